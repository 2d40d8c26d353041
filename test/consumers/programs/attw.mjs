/** Prints where the types of a tarball's package are wrong, for any door and any way to resolve it. */
import { readFile } from 'node:fs/promises'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'

const [, tarball] = process.argv.slice(2)
const { types, problems } = await checkPackage(createPackageFromTarballData(await readFile(tarball)))
console.log(JSON.stringify(types === false ? ['The package has no types'] : problems))
