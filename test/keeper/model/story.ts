/** What happened in a world, in order, for somebody who looks for a reason. */
import { seconds, type World } from './world.js'

export function storyOf(world: World): string[] {
  const requests = world.requests.map(
    ({ atMs, process, kind, username, subscriptionId, effect, created }) =>
      `${seconds(atMs)} ${process.name} sends ${kind} for ${username} ${subscriptionId ?? ''}: ${effect ?? 'no effect'} ${created ?? ''}`,
  )
  const gaps = world.gaps.map(
    ({ atMs, node, what }) => `${seconds(atMs)} ${node} reports a gap: ${JSON.stringify(what)}`,
  )
  const problems = world.problems.map(
    ({ atMs, node, what }) =>
      `${seconds(atMs)} ${node} reports a problem: ${what.code} ${what.resolved} ${what.message}`,
  )
  const ends = world.service.subscriptions.flatMap(({ id, usernames, end }) =>
    end === undefined ? [] : `${seconds(end.atMs)} ${id} of ${usernames} is ${end.reason} by ${end.by}`,
  )
  return [...world.logged, ...requests, ...gaps, ...problems, ...ends, ...world.happened].sort(
    (a, b) => Number.parseFloat(a) - Number.parseFloat(b),
  )
}
