/** Tests that a failing tool call returns an error to the model and does not end the turn. */
import { describe, expect, test } from 'vitest'
import type { HostTool } from '../../../src/server/service.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { eventually } from '../../support/process.ts'
import {
  agentWith,
  chat,
  citySchema,
  listRequestBodies,
  resultsIn,
  tool,
  toolCallResponse,
  type Way,
  ways,
} from '../../support/tools.ts'
import { totalUsage } from '../../support/usage.ts'

const harness = await startChatHarness()

/**
 * Runs a turn in which the model calls the tool `it` once, and returns the result that the model receives.
 */
async function resultOf(
  way: Way,
  it: HostTool,
  args = '{}',
  env: Record<string, string> = {},
): Promise<string> {
  const app = await harness.start(env, { tools: { it } })
  const { agent_key } = await app.createAgent(agentWith(['it']))
  await harness.answerWith(toolCallResponse(way, [{ name: 'it', args }]), 1)
  const outcome = await chat(app, way, agent_key, chatRequest('hello'))
  expect(outcome).toMatchObject({ calls: [], finishes: ['stop'] })
  const bodies = await listRequestBodies(harness)
  expect(bodies).toHaveLength(2)
  return resultsIn(bodies[1])[0] ?? 'nothing'
}

describe.each(ways)('a failing tool call (%s)', (way) => {
  test('returns an error to the model if the tool hangs', async () => {
    const hangs = tool(() => new Promise(() => {}))
    expect(await resultOf(way, hangs, '{}', { PARLEY_TOOL_SECONDS: '0.05' })).toBe(
      "Error: the tool 'it' did not respond within 0.05 seconds",
    )
  })

  test.each<[what: string, handler: HostTool['handler']]>([
    [
      'throws',
      () => {
        throw new Error('secret-host.internal refused')
      },
    ],
    ['returns a rejected promise', async () => Promise.reject(new Error('secret-host.internal refused'))],
    [
      'throws undefined',
      () => {
        throw undefined
      },
    ],
  ])('returns an error to the model if the tool %s', async (_what, handler) => {
    expect(await resultOf(way, tool(handler))).toBe("Error: the tool 'it' failed")
  })

  test.each<[what: string, value: unknown]>([
    ['a function', () => 1],
    ['a bigint', 1n],
    [
      'a circular object',
      (() => {
        const circle: Record<string, unknown> = {}
        circle.self = circle
        return circle
      })(),
    ],
  ])('returns an error to the model if the tool returns %s', async (_what, value) => {
    expect(
      await resultOf(
        way,
        tool(() => value),
      ),
    ).toBe("Error: the tool 'it' returned a value that cannot be encoded as JSON")
  })

  test('returns a truncated result to the model if the result exceeds 64 KiB', async () => {
    const result = await resultOf(
      way,
      tool(() => `a${'€'.repeat(350_000)}`),
    )
    expect(Buffer.byteLength(result)).toBeLessThanOrEqual(65_536)
    expect(Buffer.byteLength(result)).toBeGreaterThan(65_500)
    expect(result).toMatch(/^a€+\n\[The result was truncated: it has 1050001 bytes, .*\]$/)
  })

  test.each<[args: string, problem: string]>([
    ['{"city":', 'they are not valid JSON'],
    ['["Bonn"]', 'they must be a JSON object'],
    ['{}', "must have required property 'city'"],
    ['{"city":7}', 'city must be string'],
    ['{"city":"Bonn","days":0.5}', 'days must be integer'],
  ])('returns an error to the model if the arguments are %s', async (args, problem) => {
    let runs = 0
    const result = await resultOf(
      way,
      tool(() => ++runs, { inputSchema: citySchema }),
      args,
    )
    expect([result, runs]).toEqual([`Error: the arguments of 'it' are invalid: ${problem}`, 0])
  })
})

test.each<[value: unknown, text: string]>([
  ['text', 'text'],
  [undefined, ''],
  [null, 'null'],
  [7, '7'],
  [{ a: [1, 'x'] }, '{"a":[1,"x"]}'],
  ['a\ud800b', 'a\ufffdb'],
])('a tool result of %j is sent to the model as text', async (value, text) => {
  expect(
    await resultOf(
      'whole',
      tool(() => value),
    ),
  ).toBe(text)
})

test('tool arguments that are not valid JSON are replaced by {} in the next model request', async () => {
  await resultOf(
    'whole',
    tool(() => 1),
    '{"city":',
  )
  const [, second] = await listRequestBodies(harness)
  expect(second.messages[2].tool_calls).toMatchObject([{ function: { name: 'it', arguments: '{}' } }])
})

describe.each(ways)('a caller that disconnects (%s)', (way) => {
  test('stops running tools, and the usage includes the tokens used so far', async () => {
    const started = Promise.withResolvers<AbortSignal>()
    const stopped = Promise.withResolvers<void>()
    const it = tool((_args, { signal }) => {
      started.resolve(signal)
      signal.addEventListener('abort', () => stopped.resolve())
      return new Promise(() => {})
    })
    const app = await harness.start({}, { tools: { it } })
    const { agent_key } = await app.createAgent(agentWith(['it']))
    await harness.answerWith(toolCallResponse(way, [{ name: 'it' }]), 1)
    const leaving = new AbortController()
    const call = app.call('POST', '/v1/chat/completions', {
      key: agent_key,
      body: { ...chatRequest('hello'), stream: way === 'streamed' },
      signal: leaving.signal,
    })
    const ended = expect(call).rejects.toThrow('aborted')
    await started.promise
    leaving.abort()
    await stopped.promise
    await ended
    const countTokens = async () => {
      await app.service.deps.usage.flush()
      return (await totalUsage(app)).prompt_tokens
    }
    expect(await eventually(countTokens, 10)).toBe(10)
    expect(await harness.listChats()).toHaveLength(1)
  })
})

test('the total response timeout includes the time of tool calls', async () => {
  const it = tool(() => new Promise(() => {}))
  const app = await harness.start({ PARLEY_BACKEND_TOTAL_SECONDS: '0.3' }, { tools: { it } })
  const { agent_key } = await app.createAgent(agentWith(['it']))
  await harness.answerWith(toolCallResponse('whole', [{ name: 'it' }]), 1)
  const answer = await app.call('POST', '/v1/chat/completions', {
    key: agent_key,
    body: chatRequest('hello'),
  })
  expect(answer).toMatchObject({ status: 504, body: { error: { code: 'backend_timeout' } } })
})

test("the backend's idle timeout does not include the time of tool calls", async () => {
  const it = tool(() => new Promise((resolve) => setTimeout(resolve, 1_500, 'late')))
  const env = { PARLEY_BACKEND_IDLE_SECONDS: '0.5', PARLEY_BACKEND_FIRST_BYTE_SECONDS: '0.5' }
  expect(await resultOf('streamed', it, '{}', env)).toBe('late')
})

test('the log contains tool errors but not arguments or results', async () => {
  const { log, lines } = createLineLog()
  const says = tool(({ word }) => `result of ${word}`)
  const throws = tool(() => {
    throw new Error('the database is down')
  })
  const app = await harness.start({}, { log, tools: { says, throws } })
  const { agent_key } = await app.createAgent(agentWith(['says', 'throws']))
  const args = '{"word":"argument-7f3a"}'
  await harness.answerWith(
    toolCallResponse('whole', [
      { name: 'says', args },
      { name: 'throws', args },
    ]),
    1,
  )
  await chat(app, 'whole', agent_key, chatRequest('hello'))
  expect(resultsIn((await listRequestBodies(harness))[1])).toEqual([
    'result of argument-7f3a',
    "Error: the tool 'throws' failed",
  ])
  expect(lines.join('')).toContain('the database is down')
  expect(lines.join('')).not.toContain('7f3a')
})
