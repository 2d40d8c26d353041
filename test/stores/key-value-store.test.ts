import { describeCompareAndSet, describeKeyValueStore } from '../support/key-value-store-conformance.js'
import { NaiveStore } from '../support/naive-store.js'

const map = new Map<string, string>()
describeKeyValueStore('a Map', () => map, { expires: false })

const naive = new NaiveStore()
describeKeyValueStore('a naive store', () => naive)
describeCompareAndSet('a naive store', () => [naive, naive, naive], { patienceMs: 300 })
