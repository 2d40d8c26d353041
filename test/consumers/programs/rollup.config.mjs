import commonjs from '@rollup/plugin-commonjs'
import nodeResolve from '@rollup/plugin-node-resolve'

export default {
  plugins: [
    nodeResolve({ preferBuiltins: true }),
    // undici asks for it when its SQLite cache is used, and Node.js 20 has none.
    commonjs({ ignore: ['node:sqlite'] }),
  ],
  output: { format: 'es', inlineDynamicImports: true },
  // zod has some of its own.
  onwarn(warning) {
    if (JSON.stringify(warning).includes('notification-subscriber/')) throw new Error(warning.message)
  },
}
