/** Tests which details of an upstream error response callers receive. */
import { describe, expect, test } from 'vitest'
import { failureOf } from '../../support/backend.ts'
import { apiKey, chatCall, startGatewayHarness, ways } from '../../support/gateway.ts'

const { gateway, findWhoEnded } = await startGatewayHarness()

describe.each(ways)('an error response (%s)', (_way, call) => {
  test.each([400, 409, 413, 415, 422])(
    "with status %i includes the provider's message for callers",
    async (status) => {
      const body =
        '{"error":{"message":"too many tokens","type":"x","code":"context_length","param":"messages"}}'
      const failure = await failureOf(call(gateway(), `{{up:status ${status}}}{{up:body ${body}}}`))
      expect(failure).toMatchObject({
        kind: 'status',
        status,
        said: { message: 'too many tokens', code: 'context_length', param: 'messages' },
      })
    },
  )

  test.each([401, 402, 403, 404, 408, 429, 500, 502, 503, 529])(
    "with status %i hides the provider's message from callers",
    async (status) => {
      const failure = await failureOf(call(gateway(), `{{up:status ${status}}}{{up:message secret detail}}`))
      expect(failure).toMatchObject({ kind: 'status', status, said: undefined })
      expect(failure.message).not.toContain('secret')
    },
  )
})

describe('reading an error response', () => {
  const messageOf = async (body: string) =>
    (await failureOf(gateway().complete(chatCall(`{{up:status 400}}{{up:body ${body}}}`)))).said

  test.each([
    ['{"error":"text"}', { message: 'text' }],
    ['{"message":"text","code":"c","param":"p"}', { message: 'text', code: 'c', param: 'p' }],
    [
      '{"object":"error","message":"text","type":"BadRequestError","param":null,"code":400}',
      { message: 'text' },
    ],
    ['{"detail":"text"}', { message: 'text' }],
    ['{"detail":[{"loc":["body","n"],"msg":"text","type":"int"}]}', { message: 'text' }],
    ['{"error":{"message":"text","code":null,"param":null}}', { message: 'text' }],
    ['{"error":{"message":""}}', undefined],
    ['{"error":{"message":["text"]}}', undefined],
    ['{"error":null}', undefined],
    ['["text"]', undefined],
    ['null', undefined],
    ['<html>text</html>', undefined],
  ])('extracts from %s the details %j', async (body, said) => {
    expect(await messageOf(body)).toEqual(said)
  })

  test.each([
    [`wrong key ${apiKey}.`, 'wrong key [redacted].'],
    ['header was Bearer abc.def-ghi!', 'header was Bearer [redacted]'],
    ['key sk-proj-a1b2c3d4e5 is not valid', 'key [redacted] is not valid'],
    ['key sk-a1b2****c3d4.', 'key [redacted]'],
    ['a risk-free model', 'a risk-free model'],
  ])('redacts keys: %s becomes %s', async (message, shown) => {
    const body = JSON.stringify({ error: { message, code: message, param: message } })
    expect(await messageOf(body)).toEqual({ message: shown, code: shown, param: shown })
  })

  test('truncates the message to 500 characters without splitting a character or revealing part of a key', async () => {
    expect((await messageOf(JSON.stringify({ message: 'x'.repeat(2_000) })))?.message).toBe('x'.repeat(500))
    const said = await messageOf(JSON.stringify({ message: `${'x'.repeat(499)}🎈` }))
    expect(said?.message.isWellFormed()).toBe(true)
    const cut = await messageOf(JSON.stringify({ message: `${'x '.repeat(245)}${apiKey}` }))
    expect(cut?.message).not.toContain(apiKey.slice(0, 8))
  })

  test('reads at most 64 KiB of the body', async () => {
    const text = '{{up:status 400}}{{up:until-close}}{{up:flood 100000000}} endless'
    expect(await failureOf(gateway().complete(chatCall(text)))).toMatchObject({
      status: 400,
      said: undefined,
    })
    expect(await findWhoEnded('endless')).toBe('client')
  })

  test.each([
    ['{{up:status 503}}{{up:cut-off}}', {}],
    ['{{up:status 503}}{{up:reset-after}}', {}],
    ['{{up:status 503}}{{up:hang-after}}', { idleMs: 300 }],
  ])('returns the status even if the response is incomplete: %s', async (text, timings) => {
    expect(await failureOf(gateway({ timings }).complete(chatCall(text)))).toMatchObject({
      kind: 'status',
      status: 503,
    })
  })

  test.each([
    ['{{up:retry-after 7}}', 7],
    ['{{up:retry-after 0}}', 0],
    ['{{up:retry-after 1.2}}', 2],
    ['{{up:retry-after Wed, 21 Oct 2026 07:28:30 GMT}}{{up:header date: Wed, 21 Oct 2026 07:28:00 GMT}}', 30],
    ['{{up:retry-after Wed, 21 Oct 2026 07:27:00 GMT}}{{up:header date: Wed, 21 Oct 2026 07:28:00 GMT}}', 0],
    ['{{up:retry-after soon}}', undefined],
    ['{{up:retry-after -5}}', undefined],
    ['', undefined],
  ])('converts Retry-After to seconds: %s gives %s', async (directive, seconds) => {
    const failure = await failureOf(gateway().complete(chatCall(`{{up:status 429}}${directive}`)))
    expect(failure.retryAfterSeconds).toBe(seconds)
  })
})

test('a call succeeds after the upstream has recovered from an error', async () => {
  const backend = gateway()
  const request = chatCall('{{up:first 2}}{{up:status 500}} shaky')
  expect(await failureOf(backend.complete(request))).toMatchObject({ status: 500 })
  expect(await failureOf(backend.complete(request))).toMatchObject({ status: 500 })
  expect(JSON.parse(String(await backend.complete(request)))).toMatchObject({ object: 'chat.completion' })
})
