/** Asks the emulator for the secrets that stand masked in what is shown. */
import { useState } from 'preact/hooks'
import { post, problemOf } from './api.js'

export interface Reveal<Revealed> {
  /** As it was sent, once it was asked for. */
  readonly revealed: Revealed | undefined
  /** Why the emulator did not tell. */
  readonly problem: string | undefined
  readonly reveal: () => Promise<void>
  readonly hide: () => void
}

/** @param what - the body of the POST: an entry or a subscription by its id */
export function useReveal<Revealed extends object>(what: object): Reveal<Revealed> {
  const [revealed, setRevealed] = useState<Revealed>()
  const [problem, setProblem] = useState<string>()

  async function reveal(): Promise<void> {
    try {
      setRevealed(await post<Revealed>('reveal', what))
      setProblem(undefined)
    } catch (error) {
      setProblem(problemOf(error))
    }
  }

  return { revealed, problem, reveal, hide: () => setRevealed(undefined) }
}
