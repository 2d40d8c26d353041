import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { RedisServer } from '../../support/redis-server.js'

/** The answer to one command, on a connection of its own; `undefined` when none comes within the time. */
async function answerTo(server: RedisServer, command: string, waitMs = 10_000): Promise<string | undefined> {
  const socket = connect(server.port, server.host)
  await once(socket, 'connect')
  socket.end(`${command}\r\n`)
  const answer = text(socket)
  // What the server sends after the connection was given up is of no interest.
  answer.catch(() => {})
  const nothing = new Promise<undefined>((resolve) => setTimeout(resolve, waitMs, undefined))
  try {
    return await Promise.race([answer, nothing])
  } finally {
    socket.destroy()
  }
}

describe('the Redis that tests start', () => {
  test('answers, does nothing while it is suspended, and continues', async () => {
    await using server = await RedisServer.start()
    expect(await answerTo(server, 'PING')).toBe('+PONG\r\n')
    server.stop()
    expect(await answerTo(server, 'PING', 300)).toBeUndefined()
    server.resume()
    expect(await answerTo(server, 'PING')).toBe('+PONG\r\n')
  })

  test.each([
    { appendOnly: true, left: '$5\r\nvalue\r\n' },
    { appendOnly: false, left: '$-1\r\n' },
  ])(
    'killed and restarted, it is on the same port with what was on disk: %o',
    async ({ appendOnly, left }) => {
      await using server = await RedisServer.start({ appendOnly })
      expect(await answerTo(server, 'SET key value')).toBe('+OK\r\n')
      await server.kill()
      await expect(answerTo(server, 'PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
      await server.restart()
      expect(await answerTo(server, 'GET key')).toBe(left)
    },
  )

  test('a stopped one is gone at the end, too', async () => {
    const server = await RedisServer.start()
    server.stop()
    await server[Symbol.asyncDispose]()
    await expect(answerTo(server, 'PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
