import { type TestContext, test } from 'vitest'

/** `test` for tests that each have something of their own, which is gone after the test. */
export function testWith<T extends AsyncDisposable>(make: () => Promise<T>) {
  const withOwn =
    <Given>(work: (own: T, given: Given) => unknown) =>
    async (given: Given) => {
      await using own = await make()
      await work(own, given)
    }
  return Object.assign(
    (title: string, work: (own: T, context: TestContext) => unknown) => test(title, withOwn(work)),
    {
      for:
        <const Case>(cases: readonly Case[]) =>
        (title: string, work: (own: T, given: Case) => unknown) =>
          test.for(cases)(title, withOwn(work)),
    },
  )
}
