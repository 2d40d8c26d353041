/** Calls of a user's functions that run at the same time: what they throw or reject with never gets out. */

type OnFailure = (error: unknown) => void

/** The calls of one delivery, over when all of them are. */
export class Calls {
  #pending = 0
  #onOver: (() => void) | undefined

  /** Calls a function. What it throws or rejects with goes to `onFailure`, which may start further calls. */
  start(call: () => unknown, onFailure: OnFailure): void {
    try {
      const result = call()
      // Only an object can be a promise: a synchronous handler costs none.
      if (Object(result) === result) this.#await(result, onFailure)
    } catch (error) {
      onFailure(error)
    }
  }

  get areOver(): boolean {
    return this.#pending === 0
  }

  /** Calls `onOver` when those that are not over are. */
  whenOver(onOver: () => void): void {
    this.#onOver = onOver
  }

  #await(result: unknown, onFailure: OnFailure): void {
    const promise = Promise.resolve(result)
    this.#pending += 1
    promise.then(
      () => this.#end(),
      (error) => {
        onFailure(error)
        this.#end()
      },
    )
  }

  #end(): void {
    this.#pending -= 1
    if (this.#pending === 0) this.#onOver?.()
  }
}
