/** What is so once the faults have ended: each function lists what is not. */
import type { SentRequest } from './client.js'
import { type ModelSubscription, sameSet } from './service.js'
import type { Node, World } from './world.js'

/** Each wanted user has one subscription with the right values, and no other subscription of a keeper is left. */
export function wrongAtTheService(world: World): string[] {
  const { configuration, service, wanted } = world
  const wrong = [...wanted.keys()].flatMap((username) => {
    const all = world.subscriptionsOf(username).filter((each) => !mayBeLeft(world, each))
    if (all.length !== 1) return [`${username} has ${all.length} subscriptions: ${all.map(({ id }) => id)}`]
    return all.flatMap((each) => differences(world, each, configuration.parameters ?? {}))
  })
  const left = service
    .active('keeper')
    .filter((each) => !each.usernames.some((name) => wanted.has(name)) && !mayBeLeft(world, each))
  const changed = service.active('another app').filter(({ parameters }) => Object.keys(parameters).length > 0)
  return [
    ...wrong,
    ...left.map(({ id, usernames }) => `${usernames} is not wanted and has subscription ${id}`),
    ...changed.map(({ id }) => `subscription ${id} of another app was changed`),
  ]
}

function differences(
  world: World,
  subscription: ModelSubscription,
  values: Readonly<Record<string, string>>,
): string[] {
  const { id, parameters } = subscription
  const names = new Set([...Object.keys(parameters), ...Object.keys(values)])
  const wrong = [...names].filter((name) => parameters[name] !== values[name] && !isNameLost(name))
  // Only the store knew that a subscription has a parameter that the configuration no longer names.
  function isNameLost(name: string) {
    return values[name] === undefined && world.store.hasLost()
  }
  return [
    ...(isAsConfigured(world, subscription) ? [] : [`${id} has other types or another URL`]),
    ...wrong.map((name) => `${id} has ${parameters[name]} as ${name}, and not ${values[name]}`),
  ]
}

export function isAsConfigured(
  { configuration }: World,
  { callbackUrl, notificationTypes }: ModelSubscription,
): boolean {
  return (
    callbackUrl === configuration.callbackUrl && sameSet(notificationTypes, configuration.notificationTypes)
  )
}

/** What Limits in docs/keeper.md names: a subscription that is no longer wanted, and whose id was lost. */
export function mayBeLeft(world: World, subscription: ModelSubscription): boolean {
  const { usernames } = subscription
  const isUnanswered = world.requests.some(
    ({ isAnswered, kind, username = '' }) => kind === 'create' && !isAnswered && usernames.includes(username),
  )
  const isUnproven = isUnanswered || world.areIdsGivenAnew
  const isLost = world.store.hasLost() || (world.options.keeper?.existing === 'report' && isUnproven)
  const isWanted = usernames.some((name) => world.wanted.has(name))
  return isLost && !(isWanted && isAsConfigured(world, subscription))
}

/** Limits, too: without an update a 409 is the only proof, and names no id. */
export function areIdsLost({ configuration, hadWrongRoutes, problems, store }: World): boolean {
  const looksWrong = hadWrongRoutes || problems.some(({ what }) => what.code === 'ROUTES')
  return (configuration.parameters === undefined || looksWrong) && store.hasLost()
}

/** A keeper knows what is at the service, and sees no problem. */
export function wrongInTheKeeper(world: World, { keeper, process, openProblems }: Node): string[] {
  return process.run(() => {
    const { counts, problems } = keeper.status()
    const wrongIds = [...world.wanted.keys()].flatMap((username) => {
      const real = world.subscriptionsOf(username).find((each) => isAsConfigured(world, each))?.id
      const known = keeper.subscription(username)?.subscriptionId
      const isAllowed = known === real || areIdsLost(world)
      return isAllowed ? [] : [`${username} has ${real}, and the keeper knows ${known}`]
    })
    // Limits, too: an identical subscription of a lost record looks like a wrong route.
    const open = problems.filter(
      ({ code }) => !lasting.includes(code) && !(code === 'ROUTES' && world.store.hasLost()),
    )
    const isCounted =
      counts.active === world.wanted.size && counts.unproven + counts.conflict + counts.failing === 0
    return [
      ...wrongIds,
      ...open.map(({ code, message }) => `${code} is open: ${message}`),
      ...(isCounted ? [] : [`the keeper counts ${JSON.stringify(counts)} for ${world.wanted.size} users`]),
      ...(openProblems.length === problems.length
        ? []
        : [`it has reported and not resolved ${openProblems}`]),
    ].map((what) => `${process.name}: ${what}`)
  })
}

/** The receiver is suspected until later proofs; an unknown subscription is reported for an hour. */
const lasting: readonly string[] = ['RECEIVER_SUSPECTED', 'STRAY']

/** While update and unsubscribe have other routes, subscriptions are still created and restored, and no process is silent. */
export function wrongWithWrongRoutes(world: World): string[] {
  const wrong = [...world.wanted.keys()].filter((username) => {
    const all = world.subscriptionsOf(username)
    return all.length !== 1 || !all.every((each) => isAsConfigured(world, each))
  })
  // A call did not find what lives until now, and a create was refused.
  const isShownWrong = ({ status, isAnswered, subscriptionId = 0, ...call }: SentRequest) =>
    status === 404 &&
    isAnswered &&
    world.service.find(subscriptionId) !== undefined &&
    world.requests.some(
      ({ atMs, process, status, username }) =>
        status === 409 &&
        process === call.process &&
        username === call.username &&
        Math.abs(atMs - call.atMs) < 1_000,
    )
  const silent = world.nodes.filter(({ process, keeper }) => {
    const isMet = world.requests.some((each) => each.process === process && isShownWrong(each))
    return isMet && process.run(() => keeper.status().problems).every(({ code }) => code !== 'ROUTES')
  })
  return [
    // The subscriptions of the configuration before cannot be ended.
    ...(world.isConfigurationNew
      ? []
      : wrong.map((username) => `${username} has not one right subscription`)),
    ...silent.map(({ process }) => `${process.name} does not report ROUTES`),
  ]
}

/** What was sent while nothing happened: one proof per user and interval. */
export function needlessRequests(world: World, fromMs: number): string[] {
  const { gaps, haveClocksJumped, requests, wanted } = world
  const sent = requests.filter(({ atMs }) => atMs >= fromMs)
  const loud = sent.filter(
    ({ kind, status }) => kind === 'unsubscribe' || kind === 'recreate' || status === 201,
  )
  // How old the proof of another process is, a clock tells.
  const tooMany = haveClocksJumped
    ? []
    : [...wanted.keys()].filter((name) => sent.filter(({ username }) => username === name).length > 1)
  return [
    ...loud.map(({ kind, username, status }) => `at rest: ${kind} for ${username}, answered ${status}`),
    ...tooMany.map((username) => `at rest: more than one request for ${username}`),
    ...gaps.filter(({ atMs }) => atMs >= fromMs).map(({ what }) => `at rest: a gap of ${what.username}`),
  ]
}
