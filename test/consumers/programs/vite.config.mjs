export default { ssr: { noExternal: true }, build: { minify: false } }
