/** The table that is printed, for terminals and for Markdown. */
import {
  type Cost,
  callsPerSecond,
  cpuNanosecondsPerCall,
  nanosecondsPerCall,
  type Ratio,
  ratioOf,
} from './measure.js'

/** One line of the table. */
export interface Row {
  readonly what: string
  readonly ours: string
  readonly peer: string
  readonly ratio: string
  /** How many times as fast as the peer ours is, of a comparison. */
  readonly timesAsFast?: Omit<Ratio, 'round'>
}

/** A unit that figures are shown in. */
export type Unit = (figure: number) => string

export const units = {
  perSecond: (figure: number) => `${Math.round(figure).toLocaleString('en')}/s`,
  duration: (nanoseconds: number) => {
    if (nanoseconds < 1_000) return `${significant(nanoseconds)} ns`
    if (nanoseconds < 1e6) return `${significant(nanoseconds / 1_000)} µs`
    return `${significant(nanoseconds / 1e6)} ms`
  },
  bytes: (figure: number) => `${(figure / 2 ** 20).toFixed(1)} MB`,
} as const satisfies Record<string, Unit>

/** One side of what was measured. */
export interface Aspect<T> {
  readonly figureOf: (measurement: T) => number
  readonly unit: Unit
  /** Added to the figure, where the unit does not say it. */
  readonly name?: string
  /** Whether a smaller figure is the faster one. */
  readonly isTime?: boolean
}

export const speed: Aspect<Cost> = { figureOf: callsPerSecond, unit: units.perSecond }
export const timePerCall: Aspect<Cost> = { figureOf: nanosecondsPerCall, unit: units.duration, isTime: true }
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
): Row[] {
  const figures = (measurement: T | undefined) =>
    measurement === undefined
      ? ''
      : [compared, ...shown]
          .map(({ figureOf, unit, name = '' }) => `${unit(figureOf(measurement))}${name}`)
          .join(', ')
  return peers.map((peer) => {
    const ratio = ratioOf(measured.ours.map(compared.figureOf), measured[peer].map(compared.figureOf))
    const { round, median, min, max } = ratio
    return {
      what,
      ours: figures(measured.ours[round]),
      peer: `${peer} ${figures(measured[peer][round])}`,
      ratio: `${significant(median)} (${significant(min)}..${significant(max)})`,
      timesAsFast: compared.isTime ? { median: 1 / median, min: 1 / max, max: 1 / min } : ratio,
    }
  })
}

/** States a figure of ours that has no peer. */
export function fact(what: string, ours: string): Row {
  return { what, ours, peer: '', ratio: '' }
}

export function significant(figure: number): string {
  return figure >= 100 ? figure.toFixed(0) : figure.toPrecision(figure < 1 ? 2 : 3)
}

const titles = {
  what: 'what',
  ours: 'ours',
  peer: 'peer',
  ratio: 'ratio (min..max)',
} satisfies Row
const columns = Object.keys(titles) as (keyof typeof titles)[]

export function asText(rows: readonly Row[]): string {
  const lines = [titles, ...rows]
  const widths = columns.map((column) => Math.max(...lines.map((row) => row[column].length)))
  return lines
    .map((row) =>
      columns
        .map((column, index) => row[column].padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function asMarkdown(rows: readonly Row[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    line(columns.map((column) => titles[column])),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(columns.map((column) => row[column]))),
  ].join('\n')
}
