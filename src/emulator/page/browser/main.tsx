/** Where the page begins. */
import { render } from 'preact'
import { App } from './app.js'
import { Feed } from './feed-client.js'

const root = document.getElementById('app')
if (root !== null) render(<App feed={new Feed()} />, root)
