const path = require('node:path')
const webpack = require('webpack')

const [entry, file] = process.argv.slice(2)
const options = {
  entry: `./${entry}`,
  output: { path: path.dirname(file), filename: path.basename(file), chunkFormat: false },
  target: 'node20',
  mode: 'production',
  // It would take most of the time.
  optimization: { minimize: false },
}
webpack(options, (error, stats) => {
  if (error) throw error
  const { errors, warnings } = stats.toJson()
  if (errors.length + warnings.length > 0) throw new Error(stats.toString())
})
