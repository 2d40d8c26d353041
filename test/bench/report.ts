/** The tables of the figures. */
import { type Cost, callsPerSecond, cpuNanosecondsPerCall, nanosecondsPerCall, ratioOf } from './measure.js'

export interface Comparison {
  readonly what: string
  readonly ours: string
  /** The name of the other library, and its figure. */
  readonly peer: string
  readonly ratio: string
}

/** What no user takes instead: it does only a part of the work, and shows how fast the whole could be at best. */
const limits = ['undici pool.request', 'bare node:http', 'JSON.parse', 'a synced append', 'without the spool']

export interface Fact {
  readonly what: string
  readonly ours: string
  /** What a user would take in place of it, which was not measured. */
  readonly instead: string
}

export type Row = Comparison | Fact

export type Unit = (figure: number) => string

export const units = {
  perSecond: (figure: number) => `${Math.round(figure).toLocaleString('en')}/s`,
  duration: (nanoseconds: number) => {
    if (nanoseconds < 1_000) return `${significant(nanoseconds)} ns`
    if (nanoseconds < 1e6) return `${significant(nanoseconds / 1_000)} µs`
    return `${significant(nanoseconds / 1e6)} ms`
  },
} as const satisfies Record<string, Unit>

export interface Aspect<T> {
  readonly figureOf: (measurement: T) => number
  readonly unit: Unit
  /** Added to the figure, where the unit does not say it. */
  readonly name?: string
}

export const speed: Aspect<Cost> = { figureOf: callsPerSecond, unit: units.perSecond }
export const timePerCall: Aspect<Cost> = { figureOf: nanosecondsPerCall, unit: units.duration }
export const cpuPerCall: Aspect<Cost> = {
  figureOf: cpuNanosecondsPerCall,
  unit: units.duration,
  name: ' CPU',
}

/**
 * One row for each peer: both figures of the round whose ratio is the median. The first aspect is compared, the others
 * are only shown.
 */
export function comparisons<Peer extends string, T>(
  what: string,
  measured: Readonly<Record<'ours' | NoInfer<Peer>, readonly T[]>>,
  peers: readonly Peer[],
  [compared, ...shown]: readonly [Aspect<T>, ...Aspect<T>[]],
): Comparison[] {
  const figures = (measurement: T | undefined) =>
    measurement === undefined
      ? ''
      : [compared, ...shown]
          .map(({ figureOf, unit, name = '' }) => `${unit(figureOf(measurement))}${name}`)
          .join(', ')
  return peers.map((peer) => {
    const ofPeer = measured[peer].map(compared.figureOf)
    const { round, median, min, max } = ratioOf(measured.ours.map(compared.figureOf), ofPeer)
    return {
      what,
      ours: figures(measured.ours[round]),
      peer: `${limits.includes(peer) ? 'limit: ' : ''}${peer} ${figures(measured[peer][round])}`,
      ratio: `${significant(median)} (${significant(min)}..${significant(max)})`,
    }
  })
}

export function fact(what: string, ours: string, instead: string): Fact {
  return { what, ours, instead }
}

function isComparison(row: Row): row is Comparison {
  return 'peer' in row
}

function significant(figure: number): string {
  return figure >= 100 ? figure.toFixed(0) : figure.toPrecision(figure < 1 ? 2 : 3)
}

const comparisonTitles = { what: 'what', ours: 'ours', peer: 'instead', ratio: 'ratio (min..max)' }
const factTitles = { what: 'the package alone', ours: 'measured', instead: 'instead, not measured' }

/** A table of the comparisons, then one of the facts. */
export function asMarkdown(rows: readonly Row[]): string {
  const facts = rows.filter((row): row is Fact => !isComparison(row))
  return [linesOf(comparisonTitles, rows.filter(isComparison)), linesOf(factTitles, facts)]
    .filter(({ length }) => length > 1)
    .map(([titles = [], ...lines]) => [titles, titles.map(() => '---'), ...lines])
    .map((lines) => lines.map((cells) => `|${cells.join('|')}|`).join('\n'))
    .join('\n\n')
}

function linesOf<Name extends string>(
  titles: Readonly<Record<Name, string>>,
  rows: readonly Readonly<Record<NoInfer<Name>, string>>[],
): string[][] {
  const names = Object.keys(titles) as Name[]
  return [titles, ...rows].map((row, line, all) =>
    // The first cell is empty if it repeats the one above.
    names.map((name, column) => (column === 0 && row[name] === all[line - 1]?.[name] ? '' : row[name])),
  )
}
