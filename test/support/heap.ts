/** The heap of this process, to see what is kept. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

export const collectGarbage: () => void = runInNewContext('gc')

/** In bytes, without garbage. */
export function heapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
