#!/usr/bin/env node
/** The command line as a process: its streams and its exit code. `program.ts` has the commands. */
import { messageOf } from '../shared/text.js'
import { run } from './program.js'

const { stdout, stderr, env, argv } = process

// If the output fails, a command still ends as usual. A reader such as `head -1` may have ended, and a
// terminal may be closed: nothing is lost then.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' || error.code === 'EIO') return
  stderr.write(`The output cannot be written: ${messageOf(error)}\n`)
  process.exitCode ||= 2
})
stderr.on('error', () => {})

// A rejection ends the process, and shows its stack.
void run(argv.slice(2), { env, output: stdout, errors: stderr }).then((code) => {
  process.exitCode ||= code
})
