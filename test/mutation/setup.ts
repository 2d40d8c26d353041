import { beforeEach } from 'vitest'
import { beginTest } from './zod.js'

beforeEach(beginTest)
