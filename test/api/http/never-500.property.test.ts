/** Tests, with generated requests, that clients cannot cause a 5xx response or an error in the log. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { listOperations, restOperations } from '../../../src/server/api.ts'
import { type CallOptions, startApp, type TestApp } from '../../support/app.ts'
import { createLineLog } from '../../support/log-lines.ts'
import { callProcedure } from '../../support/rpc.ts'

/** Values that storage, parsers or renderers may handle incorrectly. */
const awkward = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom<unknown>(
    null,
    '',
    '\0',
    '\ud800',
    '\u202e',
    -1,
    1e308,
    1e-320,
    2 ** 53,
    '9'.repeat(400),
    [],
    {},
    [[]],
    'a'.repeat(5_000),
    'name: A\ninstructions: B\n',
    '---\nname: A\n---\n\nB',
    'agent/x',
    'mock',
  ),
)

const fieldNames = [
  ...new Set(restOperations.flatMap(({ input }) => Object.keys((input as { shape?: object }).shape ?? {}))),
]
/** Uses JSON because a generated value may have a `toString` field that is not a function. */
function toText(value: unknown): string {
  return typeof value === 'string' ? value : String(JSON.stringify(value))
}

const message = fc.record(
  {
    role: fc.oneof(fc.constantFrom('user', 'assistant', 'system', 'tool', 'developer'), awkward),
    content: awkward,
    name: awkward,
    tool_calls: awkward,
    tool_call_id: awkward,
    type: fc.oneof(fc.constantFrom('message', 'function_call', 'function_call_output'), awkward),
    call_id: awkward,
    output: awkward,
  },
  { requiredKeys: [] },
)
const conversation = fc.array(fc.oneof(message, awkward), { maxLength: 4 })
/** A body with unexpected values in known fields. */
const input = fc
  .tuple(
    fc.dictionary(fc.oneof(fc.constantFrom(...fieldNames), fc.string()), awkward, { maxKeys: 6 }),
    fc.option(conversation, { nil: undefined }),
    fc.option(fc.oneof(fc.string(), conversation), { nil: undefined }),
    fc.option(fc.constantFrom('mock', 'mock-embedding', 'agent/x'), { nil: undefined }),
  )
  .map(([fields, messages, input, model]) => ({
    ...fields,
    ...(messages && { messages }),
    ...(input !== undefined && { input }),
    ...(model && { model }),
  }))
const body = fc.oneof(input, awkward)
const headers = fc.dictionary(
  fc.constantFrom('If-Match', 'Accept', 'Origin', 'Prefer', 'Range', 'X-Request-Id'),
  fc.string({ unit: 'grapheme-ascii' }).map((text) => text.replaceAll(/[^ -~]/g, '').trim()),
  { maxKeys: 2 },
)

async function expectNoServerError(
  app: TestApp,
  lines: readonly string[],
  ask: () => Promise<{ status: number; text: string }>,
): Promise<void> {
  const { status, text } = await ask()
  expect([status, status < 500 ? '' : text]).toEqual([status, ''])
  expect(lines.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
  expect(app.service.url).toBe(app.url)
}

const unlimited = {
  PARLEY_RATE_LIMIT_PARENT: '0',
  PARLEY_RATE_LIMIT_AGENT: '0',
  PARLEY_RATE_LIMIT_AGENT_ADDRESS: '0',
}

test('a REST operation does not return a 5xx status for any generated input', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp(unlimited, { log })
  const { agent_key: agentKey, agent_id: agentId } = await app.createAgent()
  const value = fc.oneof(
    fc.constant(agentId),
    fc.constant('mock'),
    fc.string({ unit: 'binary' }),
    awkward.map(toText),
  )
  const operation = fc.constantFrom(...restOperations.filter(({ http }) => http.path !== '/v1/keys/rotate'))
  const query = fc.dictionary(
    fc.constantFrom('limit', 'after', 'before', 'order', 'x'),
    awkward.map(toText),
    { maxKeys: 3 },
  )
  const mediaType = fc.constantFrom('application/json', 'application/yaml', 'text/markdown', undefined)
  await fc.assert(
    fc.asyncProperty(
      operation,
      value,
      body,
      query,
      headers,
      mediaType,
      fc.boolean(),
      async (where, id, sent, asked, given, type, isAgent) => {
        const path = where.http.path.replaceAll(
          /\{\w+\}/g,
          () => encodeURIComponent(id.toWellFormed()) || 'x',
        )
        const search = new URLSearchParams(asked).toString()
        const takesBody = where.http.method === 'POST' || where.http.method === 'PUT'
        const options: CallOptions = {
          key: isAgent ? agentKey : app.key,
          headers: { ...given, ...(type === undefined ? {} : { 'Content-Type': type }) },
          ...(takesBody && {
            body: type === 'application/json' ? JSON.stringify(sent) : String(JSON.stringify(sent)),
          }),
        }
        await expectNoServerError(app, lines, () => app.call(where.http.method, `${path}?${search}`, options))
      },
    ),
    { numRuns: 400 },
  )
}, 60_000)

test('a tRPC procedure does not return a 5xx status for any generated input', async () => {
  const { log, lines } = createLineLog()
  const app = await startApp(unlimited, { log })
  const name = fc.constantFrom(
    ...listOperations()
      .map((one) => one.name)
      .filter((one) => one !== 'keys.rotate'),
  )
  await fc.assert(
    fc.asyncProperty(name, body, async (procedure, sent) => {
      await expectNoServerError(app, lines, () => callProcedure(app, procedure, sent))
    }),
    { numRuns: 200 },
  )
}, 60_000)
