/** Tests the console's search highlights, its conversation filters and the timeline of a turn. */
import { describe, expect, test } from 'vitest'
import { explain } from '../../client/conversations/explain.ts'
import {
  exportAddress,
  isView,
  listApplied,
  toServerFilters,
  views,
} from '../../client/conversations/list/filters.ts'
import { toSteps } from '../../client/conversations/turn/timeline.ts'
import { parseConversationsSearch } from '../../client/search.ts'
import { splitHits } from '../../client/search-hits.ts'

describe('the highlighted matches', () => {
  test.each([
    ['Where is my order?', 'ORDER', ['order']],
    ['The café is closed.', 'cafe', ['café']],
    ['a late arrival', '"late arrival" -hotel', ['late', 'arrival']],
    ['booking and booked', 'book*', ['book', 'book']],
    ['研究生命科学', '生命', ['生命']],
    ['ﬁnd the oﬃce', 'fin off', ['ﬁn', 'oﬃ']],
    ['nothing', 'else', []],
    ['nothing', '-', []],
  ])('in %j for %j are %j', (text, query, hits) => {
    const parts = splitHits(text, query)
    expect(parts.map((part) => part.text).join('')).toBe(text)
    expect(parts.filter(({ isHit }) => isHit).map((part) => part.text)).toEqual(hits)
  })
})

describe('the conversation filters', () => {
  test('include the reason, the number of tokens and the person who answers', () => {
    const search = { reason: 'off_topic', min_tokens: 500, assignee: 'me', mode: 'person' } as const
    expect(parseConversationsSearch({ ...search, min_tokens: '500' })).toEqual(search)
    expect(parseConversationsSearch({ reason: 'bored', min_tokens: -1 })).toEqual({})
    expect(toServerFilters(search)).toEqual(search)
    const [mine] = views.filter((view) => isView(view, search))
    expect(mine?.name).toBe('mine')
    expect(listApplied(search)).toEqual(['reason', 'min_tokens'])
  })

  test('omit values that the server would reject', () => {
    const search = parseConversationsSearch({
      mode: 'waiting',
      status: 'no',
      version: 7,
      from: '2026-13-01',
      q: '',
    })
    expect(search).toEqual({ mode: 'waiting', version: 7 })
    expect(parseConversationsSearch({ version: 'x', rating: 'down', to: '2026-11-30' })).toEqual({
      rating: 'down',
      to: '2026-11-30',
    })
  })

  test('include the last day and become the query parameters of an export', () => {
    const days = toServerFilters({ from: '2026-11-01', to: '2026-11-01' }) as { from: number; to: number }
    expect(days.to - days.from).toBe(86_400)
    expect(exportAddress({ q: 'a b', channel: 'api' })).toBe(
      '/v1/manager/conversations/export?q=a+b&channel=api',
    )
  })

  test('are listed as applied unless the view sets them', () => {
    expect(listApplied({ mode: 'waiting', tag: 'vip', q: 'x' })).toEqual(['tag'])
    expect(listApplied({ mode: 'waiting', rating: 'down' })).toEqual(['mode', 'rating'])
  })
})

test('the timeline of a turn names skipped models, failed attempts, fallbacks and tools in order', () => {
  const near = { provider: 'near', model: 'm' }
  const far = { provider: 'far', model: 'x' }
  const turn = {
    status: 'completed',
    duration_ms: 1_900,
    diagnostics: {
      route: { requested: 'x', chosen: near, source: 'policy', skipped: [{ ...far, why: 'not_allowed' }] },
      policy: [{ kind: 'tool_withheld', name: 'drop' }],
      history: { sent: 12, left_out: 3 },
      attempts: [
        {
          round: 1,
          ...far,
          outcome: 'backend_timeout',
          cause: 'timeout',
          http_status: 504,
          started_ms: 0,
          ended_ms: 300,
        },
        { round: 1, ...near, outcome: 'ok', cause: null, http_status: null, started_ms: 300, ended_ms: 500 },
        { round: 2, ...near, outcome: 'ok', cause: null, http_status: null, started_ms: 600, ended_ms: 900 },
      ],
      tools: [{ name: 'orders', origin: 'mcp', outcome: 'tool_error', duration_ms: 84, approval: null }],
      resumes: 2,
    },
  } as unknown as Parameters<typeof toSteps>[0]
  const steps = toSteps(turn)
  expect(steps.map(({ tone, title, detail }) => [tone, title, detail])).toEqual([
    ['warn', 'Skipped far/x', 'The model policy does not allow it.'],
    ['active', 'Chose near/m', 'The agent’s model policy names it. The request named x.'],
    ['warn', 'Withheld the tool drop', undefined],
    ['quiet', 'Sent 12 earlier items', '3 older items exceeded the definition’s limit.'],
    ['bad', 'far/x failed', 'Timed out (HTTP 504)'],
    ['good', 'Fell back to near/m', undefined],
    ['bad', 'Called the tool orders', 'The tool returned an error · on an MCP server'],
    ['good', 'near/m answered', undefined],
    ['quiet', 'A client resumed the stream 2 times', undefined],
    ['good', 'Finished after 1.90 s', undefined],
  ])
  expect(steps[5]?.span).toEqual({ from: 300 / 1_900, to: 500 / 1_900 })
})

const stepsOf = (turn: object, items: readonly object[] = []) =>
  toSteps(turn as Parameters<typeof toSteps>[0], items as unknown as Parameters<typeof toSteps>[1])

test('the timeline sorts model calls and tools by their start, and shows both as bars', () => {
  const attempt = { provider: 'near', model: 'm', outcome: 'ok' }
  const tool = { origin: 'host', outcome: 'ok', approval: null }
  const steps = stepsOf({
    ...{ status: 'completed', duration_ms: 1_000 },
    diagnostics: {
      attempts: [
        { ...attempt, round: 1, started_ms: 0, ended_ms: 100 },
        { ...attempt, round: 2, started_ms: 300, ended_ms: 400 },
        { ...attempt, round: 3, started_ms: 600, ended_ms: 900 },
      ],
      tools: [
        { ...tool, name: 'first', round: 1, started_ms: 100, duration_ms: 200 },
        { ...tool, name: 'second', round: 2, started_ms: 400, duration_ms: 200 },
      ],
    },
  })
  const answered = 'near/m answered'
  const titles = [answered, 'Called the tool first', answered, 'Called the tool second', answered]
  expect(steps.slice(0, 5).map(({ title }) => title)).toEqual(titles)
  expect(steps[3]?.span).toEqual({ from: 0.4, to: 0.6 })
})

test('the timeline shows calls to tools of the page, and whether the page has answered', () => {
  const call = (id: string, at: number) => ({
    ...{ type: 'function_call', name: 'postMessage_open', call_id: id },
    parley: { turn_id: 'turn_1', author: 'model', created_at: at },
  })
  const output = (id: string, author: string, at: number) => ({
    ...{ type: 'function_call_output', call_id: id },
    parley: { turn_id: 'turn_2', author, created_at: at },
  })
  const other = { ...call('c', 10), parley: { turn_id: 'turn_2', author: 'model', created_at: 10 } }
  const items = [call('a', 10), call('b', 10), output('a', 'page', 13), output('b', 'service', 13), other]
  const steps = stepsOf({ id: 'turn_1', status: 'completed', duration_ms: null, diagnostics: {} }, items)
  expect(steps).toEqual([
    { tone: 'good', title: 'Called the tool open', detail: 'on the page', durationMs: 3_000 },
    { tone: 'warn', title: 'Called the tool open', detail: 'No result · on the page' },
  ])
})

test('the timeline explains redirects, error events, refused models and truncated diagnostics', () => {
  const attempt = { provider: 'near', model: 'm', outcome: 'backend_error', started_ms: 0, ended_ms: 1 }
  const steps = stepsOf({
    ...{ status: 'failed', duration_ms: 10 },
    diagnostics: {
      is_truncated: true,
      route: { requested: null, chosen: null, source: 'default', skipped: [] },
      policy: [{ kind: 'model_refused', name: 'far/x' }],
      attempts: ['status_3xx', 'error_event'].map((cause) => ({ ...attempt, cause })),
    },
  })
  expect(steps.map(({ title, detail }) => detail ?? title)).toEqual([
    'The model far/x was not available or not allowed',
    'Attempts, rules and tools are missing, because the diagnostics were too large',
    'The provider redirected the request',
    'The provider reported an error during the answer',
  ])
})

test('the timeline of a turn that a takeover stopped names the takeover', () => {
  const turn = { status: 'cancelled', duration_ms: 300, diagnostics: { stopped: 'taken_over' } }
  const steps = toSteps(turn as unknown as Parameters<typeof toSteps>[0])
  expect(steps).toEqual([{ tone: 'warn', title: 'A colleague took the conversation over' }])
})

test('an answer that a takeover or an error cut off is explained', () => {
  const explained = (turn: object) => explain(turn as Parameters<typeof explain>[0])
  expect(explained({ status: 'cancelled', reason: 'taken_over', error_code: null })).toBe(
    'A colleague took the conversation over.',
  )
  expect(explained({ status: 'cancelled', reason: null, error_code: null })).toBe('The answer was cancelled.')
  expect(explained({ status: 'incomplete', reason: 'interrupted', error_code: 'backend_error' })).toBe(
    'An error cut the answer off (backend_error).',
  )
})
