/** Processes of their own for what is measured, so that no subject warms up or slows down another. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type Functions = Readonly<Record<string, (argument: never) => unknown>>

export interface StartOptions {
  /** What it finds in `process.argv` after its own name. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface Remote<F extends Functions> {
  call<Name extends keyof F & string>(
    name: Name,
    ...argument: Parameters<F[Name]>
  ): Promise<Awaited<ReturnType<F[Name]>>>
  stop(): Promise<void>
}

type Answer = { readonly result: unknown } | { readonly error: string }

/** Starts `processes/<file>.ts`, which calls {@link serve}. Calls to one process must not overlap. */
async function start<F extends Functions>(
  file: string,
  { args = [], env = {} }: StartOptions = {},
): Promise<Remote<F>> {
  const child = fork(fileURLToPath(new URL(`processes/${file}.ts`, import.meta.url)), args, {
    // Those of this process make it run TypeScript.
    execArgv: [...process.execArgv, '--expose-gc'],
    env: { ...withoutProxies(process.env), ...env },
  })
  const exited = once(child, 'exit')
  const answer = async (): Promise<Answer> => {
    const [message] = await Promise.race([
      once(child, 'message'),
      exited.then(([code]) => [{ error: `${file} ended with code ${code}` }]),
    ])
    return message
  }
  await resultOf(answer())
  return {
    async call(name, argument?) {
      const answered = answer()
      child.send({ name, argument })
      return (await resultOf(answered)) as never
    },
    async stop() {
      child.disconnect()
      await exited
    },
  }
}

async function resultOf(answer: Promise<Answer>): Promise<unknown> {
  const settled = await answer
  if ('error' in settled) throw new Error(settled.error)
  return settled.result
}

/** What is measured stays on loopback. */
function withoutProxies(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(https?|all|no)_proxy$/i.test(name)))
}

/** Answers the calls of the process that started this one, and ends with it. */
export function serve(functions: Functions): void {
  const send = (answer: Answer) => process.send?.(answer)
  process.on('message', async ({ name, argument }: { name: string; argument: never }) => {
    try {
      send({ result: await functions[name]?.(argument) })
    } catch (error) {
      send({ error: error instanceof Error ? `${error.stack}` : String(error) })
    }
  })
  process.on('disconnect', () => process.exit())
  send({ result: 'ready' })
}

/** Starts a process, measures with it, and stops it whatever happens. */
export async function withProcess<F extends Functions, T>(
  file: string,
  options: StartOptions,
  work: (remote: Remote<F>) => Promise<T>,
): Promise<T> {
  const remote = await start<F>(file, options)
  try {
    return await work(remote)
  } finally {
    await remote.stop()
  }
}

/** The same with one process of a kind for each name, which is the first of its arguments. */
export async function withEach<Name extends string, F extends Functions, T>(
  file: string,
  names: readonly Name[],
  { args = [], env = {} }: StartOptions,
  work: (remotes: Readonly<Record<Name, Remote<F>>>) => Promise<T>,
): Promise<T> {
  const remotes: Partial<Record<Name, Remote<F>>> = {}
  try {
    for (const name of names) remotes[name] = await start<F>(file, { args: [name, ...args], env })
    return await work(remotes as Record<Name, Remote<F>>)
  } finally {
    await Promise.all(Object.values<Remote<F> | undefined>(remotes).map((remote) => remote?.stop()))
  }
}
