/** Prints what publint has to say about the package in a folder. */
import { publint } from 'publint'

const [pkgDir] = process.argv.slice(2)
const { messages } = await publint({ pkgDir, strict: true, pack: false })
console.log(JSON.stringify(messages))
