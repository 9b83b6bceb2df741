/** Tests the directives in user messages that control the mock backend. */
import { describe, expect, test } from 'vitest'
import { BackendFailure } from '../../src/providers/provider.ts'
import { failureOf, iteratorDone, neverAborted, readChunks } from '../support/backend.ts'
import {
  backend,
  callsOf,
  chatRequest,
  complete,
  createMockProvider,
  firstChoiceOf,
  joinChoice,
  parseChunks,
  streamChunks,
  textOf,
  weather,
} from '../support/mock.ts'

describe('mock directives', () => {
  test.each([
    ['[[delay:5]] hello', 'hello'],
    ['hello [[delay:5]]', 'hello'],
    ['a [[delay:5]] b', 'a b'],
    ['a[[delay:5]]b', 'ab'],
    ['a [[delay:1]] [[delay:2]] b\n', 'a b\n'],
    ['[[delay:1]]', ''],
    ['[[delay:x]] [[unknown:1]] [[error:200]] [[[hang]', '[[delay:x]] [[unknown:1]] [[error:200]] [[[hang]'],
    ['[[tool:f {"a":}]] [[tool:f {"a":1]]', '[[tool:f {"a":}]] [[tool:f {"a":1]]'],
  ])('are removed from the text if they are valid: %j becomes %j', async (source, rest) => {
    expect(await textOf(chatRequest(source))).toBe(`You said: ${rest}`)
  })

  test('apply only if they are in the last user message', async () => {
    const messages = [
      { role: 'system', content: '[[tokens:3]]' },
      { role: 'user', content: '[[error:500]]' },
      { role: 'assistant', content: '[[hang]]' },
      { role: 'user', content: 'hi' },
    ]
    expect(await textOf({ messages })).toBe('You said: hi')
  })
})

describe('the mock directive', () => {
  test('[[tool:NAME {json}]] calls tools in order, even if the JSON contains brackets', async () => {
    const args = '{"grid": [[1, 2], [3]], "text": "}]] \\" [["}'
    const body = chatRequest(`go [[tool:first ${args}]] [[tool:second]] [[tool:second { } ]]`)
    const { message, finish_reason } = await firstChoiceOf(body)
    const called = (id: number, name: string, text: string) => ({
      id: expect.stringMatching(new RegExp(`^call_\\w+_${id}$`)),
      type: 'function',
      function: { name, arguments: text },
    })
    expect(finish_reason).toBe('tool_calls')
    expect(message.content).toBe(null)
    expect(message.tool_calls).toEqual([
      called(0, 'first', args),
      called(1, 'second', '{}'),
      called(2, 'second', '{ }'),
    ])
  })

  test('[[tokens:N]] produces a response of exactly N words, up to 100,000', async () => {
    const five = await complete(chatRequest('[[tokens:5]] ignored'))
    expect(five.choices[0]?.message.content?.split(' ')).toHaveLength(5)
    expect(five.usage?.completion_tokens).toBe(5)
    expect(await textOf(chatRequest('[[tokens:0]]'))).toBe('')
    const { content } = joinChoice(await streamChunks(chatRequest('[[tokens:999999999]]')), 0)
    expect(content?.split(' ')).toHaveLength(100_000)
    expect((await streamChunks(chatRequest('[[tokens:1000]]'))).length).toBe(1002)
  })

  test('[[delay:MS]] delays every chunk of a stream, or a complete response once', async () => {
    const world = createMockProvider()
    const body = chatRequest('[[delay:30]] one two')
    const reads = await readChunks(await world.backend.stream({ body, signal: neverAborted }))
    expect(reads.map((read) => parseChunks(Buffer.from(read).toString()).length)).toEqual([1, 1, 1, 1, 1, 1])
    expect(world.waitsMs).toEqual([30, 30, 30, 30, 30, 30])
    await complete(body, world.backend)
    expect(world.waitsMs).toHaveLength(7)
  })

  test.each([[400], [401], [429], [500], [599]])(
    '[[error:%i]] fails the request before anything is sent',
    async (status) => {
      const body = chatRequest(`[[error:${status}]]`)
      for (const attempt of [
        backend.complete({ body, signal: neverAborted }),
        backend.stream({ body, signal: neverAborted }),
      ]) {
        const failure = await failureOf(attempt)
        expect(failure).toMatchObject({ kind: 'status', status })
        expect(failure.retryAfterSeconds).toBe(status === 429 ? 1 : undefined)
        expect(failure.said?.message).toBe(status === 400 ? failure.message : undefined)
      }
    },
  )

  test.each([
    ['no chunks', 0, 'a b', 0],
    ['three chunks', 3, 'a b', 3],
    ['more chunks than one read returns', 100, '[[tokens:200]]', 100],
    ['the last chunk if the response is shorter', 50, 'a b', 6],
  ])('[[break:N]] interrupts a stream after %s', async (_, breakAfter, text, chunks) => {
    const reader = await backend.stream({
      body: chatRequest(`[[break:${breakAfter}]] ${text}`),
      signal: neverAborted,
    })
    let received = ''
    const reading = (async () => {
      for (;;) received += Buffer.from((await reader.next()).value ?? '[ended]').toString()
    })()
    expect(await failureOf(reading)).toMatchObject({ kind: 'unreachable' })
    expect(parseChunks(received)).toHaveLength(chunks)
    expect(received).not.toContain('[DONE]')
    expect(await reader.next()).toEqual(iteratorDone)
  })

  test('[[break:N]] makes a complete response fail immediately', async () => {
    const failure = await failureOf(
      backend.complete({ body: chatRequest('[[break:9]] [[delay:50]]'), signal: neverAborted }),
    )
    expect(failure).toMatchObject({ kind: 'unreachable', status: undefined })
  })

  test.each(['complete', 'stream'] as const)(
    '[[hang]] blocks %s until the signal is aborted',
    async (verb) => {
      const caller = new AbortController()
      let isSettled = false
      const attempt = backend[verb]({ body: chatRequest('[[hang]]'), signal: caller.signal }).finally(() => {
        isSettled = true
      })
      await new Promise((resolve) => setImmediate(resolve))
      expect(isSettled).toBe(false)
      caller.abort(new BackendFailure('timeout', 'too slow'))
      expect(await failureOf(attempt)).toMatchObject({ kind: 'timeout', message: 'too slow' })
    },
  )
})

describe('adversarial mock directives', () => {
  test('are parsed quickly', async () => {
    const texts = ['[[tool:f {', '[[', '[[hang]', 'x[[delay:1]]', ' ', 'a="', '[[tool:f {"'].map((part) =>
      part.repeat(200_000),
    )
    for (const text of texts) {
      expect(await callsOf(chatRequest(text, { tools: [weather], tool_choice: 'required' }))).toHaveLength(1)
    }
  }, 10_000)
})
