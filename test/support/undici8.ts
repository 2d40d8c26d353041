/** undici 8, on the versions of Node.js that can load it. */
export const undici8 = Number.parseInt(process.versions.node, 10) >= 22 ? await import('undici8') : undefined
