import { expect, test } from 'vitest'
import { curlOf } from '../../../../src/emulator/page/browser/curl.js'
import type { CallbackView, RequestView, ServiceView } from '../../../../src/emulator/page/views.js'

const message = { id: 1, at: 0, startedAt: 0, status: 204, durationMs: 1, bodyLength: 0, cutFrom: undefined }
const common = { ...message, fault: undefined, answer: undefined, subscriptionId: 1, body: '', headers: [] }

const service: ServiceView = {
  baseUrl: 'https://127.0.0.1:8443/base',
  allowInsecureLoopback: false,
  variables: [],
}

const callback: CallbackView = {
  ...common,
  ...{ kind: 'callback', method: 'POST', notificationId: 'n', type: 'empathyCueOpened', username: 'alice' },
  target: 'https://app.example.com/x?ids[]=1&in={a,b}',
}

const request: RequestView = {
  ...common,
  ...{ kind: 'request', method: 'PUT', operation: 'unknown' },
  target: '//api/subscriptions?a=b',
}

test('brackets and braces of an address are no pattern of curl', () => {
  expect(curlOf(callback, service)).toBe(`curl --globoff --include --request POST '${callback.target}'`)
})

test('a request goes to the emulator, also if its path begins with two slashes', () => {
  expect(curlOf(request, service)).toContain(`'https://127.0.0.1:8443${request.target}'`)
})
