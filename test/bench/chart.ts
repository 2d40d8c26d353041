/** The comparisons as a picture: how many times as fast as each peer, with the range over the rounds. */
import { type Comparison, isComparison, limitMark, type Row, significant } from './report.js'

const width = 860
const labelWidth = 400
const rowHeight = 22
const top = 64
const right = 70

/** An SVG that follows the reader's light or dark scheme. */
export function chartOf(rows: readonly Row[], caption: string): string {
  const compared = rows.filter(isComparison).filter(({ peer }) => !peer.startsWith(limitMark))
  const height = top + compared.length * rowHeight + 44
  const largest = Math.max(...compared.map(({ timesAsFast }) => timesAsFast.max), 2)
  const smallest = Math.min(...compared.map(({ timesAsFast }) => timesAsFast.min), 0.5)
  const x = scale(smallest, largest)
  const ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].filter((tick) => tick >= smallest && tick <= largest)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">
<title id="title">How many times as fast as its peers the package is. ${escaped(caption)}</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2430 }
  .quiet { fill: #667085; font-size: 12px }
  .grid { stroke: #d8dce4 } .one { stroke: #667085; stroke-dasharray: 4 3 }
  .range { stroke: #9db7f5; stroke-width: 6; stroke-linecap: round } .dot { fill: #2456d6 }
  .slower .range { stroke: #f2c48d } .slower .dot { fill: #b45309 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9f0 } .quiet { fill: #98a2b3 } .grid { stroke: #363c48 } .one { stroke: #98a2b3 }
    .range { stroke: #33508f } .dot { fill: #8fb1ff } .slower .range { stroke: #6b4a1f } .slower .dot { fill: #fdb567 }
  }
</style>
<text x="0" y="18" font-weight="600">Times as fast as the peer, measured side by side (dot: median, bar: range; to the right is faster)</text>
${ticks
  .map(
    (tick) =>
      `<line class="${tick === 1 ? 'one' : 'grid'}" x1="${x(tick)}" x2="${x(tick)}" y1="${top - 14}" y2="${height - 36}"/>` +
      `<text class="quiet" x="${x(tick)}" y="${top - 20}" text-anchor="middle">${tick}×</text>`,
  )
  .join('\n')}
${compared.map((row, index) => line(row, top + index * rowHeight + 4, x)).join('\n')}
<text class="quiet" x="0" y="${height - 10}">${escaped(caption)}</text>
</svg>
`
}

function line({ what, peer, timesAsFast }: Comparison, y: number, x: (times: number) => number): string {
  const { median, min, max } = timesAsFast
  // The peer's name stands before its first figure.
  const name = peer.replace(/ [\d.,]+ ?(ns|µs|ms|\/s).*$/, '')
  return (
    `<g class="${median < 1 ? 'slower' : 'faster'}">` +
    `<text x="0" y="${y + 5}">${escaped(what)} / ${escaped(name)}</text>` +
    `<line class="range" x1="${x(min)}" x2="${x(max)}" y1="${y}" y2="${y}"/>` +
    `<circle class="dot" cx="${x(median)}" cy="${y}" r="5"/>` +
    `<text class="quiet" x="${width - right + 14}" y="${y + 5}">${significant(median)}×</text></g>`
  )
}

/** Logarithmic, so that twice as fast and half as fast are equally far from alike. */
function scale(smallest: number, largest: number): (times: number) => number {
  const from = Math.log(smallest)
  const perUnit = (width - labelWidth - right) / (Math.log(largest) - from)
  return (times) => Number((labelWidth + (Math.log(times) - from) * perUnit).toFixed(1))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
