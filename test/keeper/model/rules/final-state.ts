/** What is so once the faults have ended: each function lists what is not. */
import { isKept, type ModelSubscription, sameSet } from '../service.js'
import type { Node, World } from '../world.js'
import { mayLast } from './problem-reports.js'
import { claimFreshMs } from './requests.js'
import { mayWait } from './restores.js'

/** At the service there is what is wanted, and nothing else that a keeper made. */
export function problemsAtTheService(world: World): string[] {
  const unwanted = leftOvers(world).filter(
    ({ usernames }) => !usernames.some((name) => world.wanted.has(name)),
  )
  return [
    ...[...world.wanted.keys()].flatMap((username) => problemsOf(world, username)),
    ...unwanted.map(({ id, usernames }) => `${usernames} is not wanted and has subscription ${id}`),
    ...harmToOthers(world),
  ]
}

function problemsOf(world: World, username: string): string[] {
  const { callbackUrl, notificationTypes, parameters } = world.configuration
  const active = world.service.activeFor(username).filter(isKept)
  const [subscription] = active
  if (active.length !== 1 || subscription === undefined)
    return [`${username} has ${active.length} subscriptions`]
  const problems: string[] = []
  if (subscription.callbackUrl !== callbackUrl) problems.push(`${username} is subscribed to another URL`)
  if (!sameSet(subscription.notificationTypes, notificationTypes)) {
    problems.push(`${username} is subscribed to ${subscription.notificationTypes}`)
  }
  const names = new Set([...Object.keys(subscription.parameters), ...Object.keys(parameters ?? {})])
  for (const name of names) {
    const value = subscription.parameters[name]
    // What nobody knows of cannot be taken away.
    const isUnknown = parameters?.[name] === undefined && world.knowledge.isNameLost(subscription, name)
    if (value !== parameters?.[name] && !isUnknown)
      problems.push(`${username} has ${value} as the parameter ${name}`)
  }
  return problems
}

/** What others have made is neither ended nor changed, unless it looks like the keeper's: see `rules/requests.ts`. */
function harmToOthers({ bystanders, options, service }: World): string[] {
  const mayReplace = options.keeper?.existing !== 'report'
  const ended = service.subscriptions.filter(({ usernames, createdBy, end }) => {
    const isTwin = end?.reason === 'replaced' && usernames.length === 1
    return createdBy === 'somebody else' && end?.by === 'keeper' && !(isTwin && mayReplace)
  })
  const changed = bystanders.filter(
    ({ parameters }) => parameters.token !== 'of somebody else' || Object.keys(parameters).length !== 1,
  )
  return [
    ...ended.map(({ id, end }) => `subscription ${id} of somebody else was ${end?.reason}`),
    ...changed.map(({ id }) => `the parameters of subscription ${id} of somebody else were changed`),
  ]
}

/** A record outlives its user for a day at most: nobody would ever read it again. */
export function recordsOfNobody({ store, wanted }: World): string[] {
  if (store.isDamaged) return []
  return store
    .usernames()
    .filter((name) => !wanted.has(name) && store.isKeptForGood(name) && !store.hasMember(name))
    .map((name) => `the record of ${name} stays for ever: ${store.text(name)}`)
}

/** What keepers have made and must be able to end: deliveries show what no process can know of, as a `STRAY`. */
export function leftOvers(world: World): ModelSubscription[] {
  const isWanted = ({ usernames }: ModelSubscription) => usernames.some((name) => world.wanted.has(name))
  return world.service.active().filter((each) => {
    const isLost = !isWanted(each) && world.knowledge.isLost(each)
    const { lostIds, unprovableIds } = world.knowledge
    const hasParameters = world.configuration.parameters !== undefined
    // A wanted user's wrong id is found out by an update, and the right one takes its place.
    const isFound = hasParameters && isWanted(each)
    const isIdLost = (!isFound && lostIds.has(each.id)) || unprovableIds.has(each.id)
    return isKept(each) && !isLost && !isIdLost
  })
}

/** A keeper knows what is at the service, and sees no problem. */
export function problemsInTheKeeper(world: World, { keeper, process }: Node): string[] {
  const problems: string[] = []
  for (const username of world.wanted.keys()) {
    const real = world.service.activeFor(username).find((each) => world.isAsConfigured(each))?.id
    const known = process.run(() => keeper.subscription(username))
    if (known?.subscriptionId !== real && !isUnknowable(world, real)) {
      problems.push(
        `${username} has subscription ${real}, and the keeper of ${process.name} knows ${known?.subscriptionId}`,
      )
    }
  }
  const status = process.run(() => keeper.status())
  for (const problem of status.problems.filter((each) => !mayLast(each)))
    problems.push(`the keeper of ${process.name} still sees ${problem.code}: ${problem.message}`)
  const { active, unproven, conflict, failing } = status.counts
  const isAll = active + unproven === world.wanted.size && unproven <= unprovable(world).length
  if (!isAll || conflict + failing > 0) {
    problems.push(
      `the keeper of ${process.name} counts ${JSON.stringify(status.counts)} for ${world.wanted.size} users`,
    )
  }
  return problems
}

/**
 * Whether no process can know an id for certain: the store never held it, because it failed, or has lost it. Without parameters there
 * is no proof by id, so that a 409 passes for a proof of the subscription before. Its deliveries are reported as a
 * `STRAY`, and it is ended all the same.
 */
export function isUnknowable(
  { configuration, knowledge, service, store }: World,
  id: number | undefined,
): boolean {
  if (configuration.parameters !== undefined || id === undefined) return false
  if (knowledge.isOrphan(id) || knowledge.lostIds.has(id) || knowledge.unprovableIds.has(id)) return true
  const createdAtMs = service.find(id)?.createdAtMs ?? 0
  // The claim of its create was lost, so that nobody wrote the id.
  if (store.hasLostBetween(createdAtMs - claimFreshMs, createdAtMs + claimFreshMs)) return true
  // Lost twice: processes that remember the time before the first loss may be believed after the second.
  return store.hasLostBetween(0, createdAtMs) && store.hasLostBetween(createdAtMs, Number.POSITIVE_INFINITY)
}

/** The users whom a plain create, the only proof without parameters, might restore before the time has come. */
function unprovable(world: World): string[] {
  if (world.configuration.parameters !== undefined) return []
  return [...world.wanted.keys()].filter((username) => mayWait(world, username))
}
