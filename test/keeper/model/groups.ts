/** Groups of random sequences: what can happen in each, and what its sequences must come to, or they prove nothing. */
import type { EventName, Kind } from './scenarios.js'

export interface Group extends Kind {
  readonly mustReach: readonly string[]
  /** Of the number of sequences that other groups get. */
  readonly share?: number
}

/** Happens to a keeper whatever else does. */
const ordinary: EventName[] = ['wait', 'end', 'want', 'wantNoLonger', 'callBack', 'sweep']

export const groups: Readonly<Record<string, Group>> = {
  'after a service that fails, is slow, and loses answers': {
    events: [...ordinary, 'outage', 'loseAnswers', 'refuseUser', 'breakReceiver'],
    mustReach: [
      'recreate 201',
      'gap ended',
      'gap replaced',
      'SERVICE resolved',
      'CREDENTIALS',
      'RECEIVER_SUSPECTED',
    ],
  },
  'after processes that die, sleep, stop and start': {
    events: [
      ...ordinary,
      'endAgainAndAgain',
      'loseAnswers',
      'crash',
      'crashLater',
      'stop',
      'pause',
      'suspend',
      'sleep',
      'standStillLater',
      'startAnother',
    ],
    mustReach: ['recreate 201', 'gap ended', 'gap replaced', 'unsubscribe 204'],
  },
  'after a store that fails, hangs, is slow, or answers with nothing': {
    events: [...ordinary, 'loseAnswers', 'failingStore', 'crash', 'startAnother'],
    mustReach: ['STORE', 'STORE resolved', 'gap ended'],
  },
  'after processes that alone lose sight of the store': {
    events: [...ordinary, 'cutOff', 'rotate', 'reconfigure', 'startAnother', 'crash', 'stop', 'loseAnswers'],
    mustReach: ['STORE', 'STORE resolved', 'gap ended', 'update 200'],
  },
  'after a store that is emptied': {
    events: [...ordinary, 'emptyStore', 'crash', 'stop', 'startAnother'],
    mustReach: ['gap ended', 'recreate 201'],
  },
  'after a store that is emptied while the configuration changes': {
    events: [...ordinary, 'emptyStore', 'reconfigure', 'rotate', 'crash', 'stop', 'startAnother'],
    mustReach: ['gap changed', 'gap ended', 'SUPERSEDED'],
  },
  'after a promoted replica that lacks the last writes': {
    events: [...ordinary, 'promoteReplica', 'rotate', 'crash', 'crashLater', 'loseAnswers', 'startAnother'],
    mustReach: ['STORE', 'gap ended'],
  },
  'after a store that is restored from an old dump': {
    events: [...ordinary, 'restoreDump', 'rotate', 'reconfigure', 'crash', 'stop', 'startAnother'],
    mustReach: ['gap ended'],
  },
  'after a store that confirms writes and loses them': {
    events: [...ordinary, 'droppedWrites', 'loseAnswers', 'crash', 'startAnother'],
    mustReach: ['gap ended'],
  },
  'after garbage under one key': {
    events: [...ordinary, 'spoilKey', 'rotate', 'crash', 'startAnother'],
    mustReach: ['STORE', 'STORE resolved', 'gap ended'],
  },
  'after a roster that is empty, fails or hangs': {
    events: [...ordinary, 'roster', 'wantInvalidName', 'crash', 'suspend', 'startAnother', 'loseAnswers'],
    mustReach: ['ROSTER', 'ROSTER resolved', 'unsubscribe 204'],
  },
  'after a roster of many that is halved, somebody else’s, empty, fails or hangs': {
    events: [...ordinary, 'roster', 'crash', 'startAnother', 'loseAnswers'],
    mustReach: ['ROSTER', 'ROSTER resolved'],
    usersAtLeast: 14,
    share: 1 / 2,
  },
  'after changes of the configuration': {
    events: [...ordinary, 'reconfigure', 'rotate', 'crash', 'crashLater', 'loseAnswers', 'startAnother'],
    mustReach: ['gap changed', 'update 200', 'SUPERSEDED'],
  },
  'after clocks that jump': {
    events: [...ordinary, 'jumpClock', 'suspend', 'sleep', 'crash', 'startAnother', 'loseAnswers'],
    mustReach: ['gap ended'],
  },
  'after somebody else took the place of a subscription': {
    events: [...ordinary, 'subscribeSomebodyElse', 'outage'],
    mustReach: ['CONFLICT', 'CONFLICT resolved'],
  },
  'after somebody else took the place of a subscription with one that looks the same, which is replaced': {
    events: ['wait', 'end', 'callBack', 'sweep', 'subscribeTwin', 'stop', 'crash', 'loseAnswers'],
    mustReach: ['gap ended', 'gap replaced'],
  },
  'after somebody else took the place of a subscription with one that looks the same, which is reported': {
    events: ['wait', 'end', 'callBack', 'sweep', 'subscribeTwin', 'stop'],
    mustReach: ['gap ended'],
    existing: 'report',
  },
  'after everything at once': {
    events: [
      ...ordinary,
      'outage',
      'loseAnswers',
      'refuseUser',
      'breakReceiver',
      'roster',
      'wantInvalidName',
      'failingStore',
      'cutOff',
      'promoteReplica',
      'spoilKey',
      'crash',
      'crashLater',
      'stop',
      'pause',
      'suspend',
      'sleep',
      'standStillLater',
      'jumpClock',
      'startAnother',
      'rotate',
      'reconfigure',
    ],
    mustReach: [],
  },
}
