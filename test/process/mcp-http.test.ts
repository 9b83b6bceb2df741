/**
 * Tests the tools of MCP servers over HTTP, both with sessions (2025 protocol) and without (newer protocol).
 */
import { describe, expect, test, vi } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { chatRequest, startChatHarness } from '../support/chat-harness.ts'
import { createLineLog } from '../support/log-lines.ts'
import { type McpHttpServer, startMcpHttpServer, startWithMcp, waitForTools } from '../support/mcp.ts'
import { eventually } from '../support/process.ts'
import { agentWith, resultOf as findResult, tool, toolCallResponse } from '../support/tools.ts'

vi.setConfig({ testTimeout: 60_000 })

const harness = await startChatHarness()
const config = ({ url }: McpHttpServer) => ({ near: { url, headers: { Authorization: 'Bearer mcp-key' } } })

/** Makes the model call a tool; returns the result that the model receives. */
const resultOf = (app: TestApp, name: string, args?: string) => findResult(harness, app, name, args)

describe.each([
  ['with sessions', []],
  ['without sessions', ['--modern']],
])('an MCP server %s', (_what, words) => {
  test('provides tools from all pages of its list and receives the configured headers', async () => {
    const server = await startMcpHttpServer(words)
    const app = await startWithMcp(harness, config(server), ['echo', 'data'])
    const names = app.service.deps.tools.list().map(({ name }) => name)
    expect(names.toSorted()).toEqual([
      'big',
      'data',
      'die',
      'echo',
      'environment',
      'fail',
      'huge',
      'mixed',
      'near__dotted_name',
      'seen',
      'wait',
    ])
    const { agent_key } = await app.createAgent(agentWith(['echo', 'near__echo']))
    const me = await app.call('GET', '/v1/agents/me', { key: agent_key })
    expect(me.body.tools).toEqual(
      ['echo', 'near__echo'].map((name) => ({
        name,
        description: 'Repeats the text.',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      })),
    )
    expect(new Set((await server.seen()).authorizations)).toEqual(new Set(['Bearer mcp-key']))
  })

  test('returns its results and errors to the model', async () => {
    const app = await startWithMcp(harness, config(await startMcpHttpServer(words)), ['echo'])
    const results: Record<string, string> = {}
    for (const name of ['near__dotted_name', 'fail', 'mixed', 'data'])
      results[name] = await resultOf(app, name)
    expect(results).toEqual({
      near__dotted_name: 'dotted',
      fail: 'Error: no such order',
      mixed:
        'one\n[image, image/png, not shown]\n[resource file:///a.txt]\ntwo\n[resource file:///c.bin, not shown]',
      data: '{"degrees":7}',
    })
    expect(await resultOf(app, 'echo', '{"text":"hi"}')).toBe('echo: hi')
    expect(await resultOf(app, 'near__echo', '{"text":7}')).toBe(
      "Error: the arguments of 'near__echo' are invalid: text must be string",
    )
    expect(await resultOf(app, 'near__gone')).toBe("Error: the tool 'near__gone' does not exist")
  })

  test('handles further calls after a large result is truncated and a huge one is rejected', async () => {
    const app = await startWithMcp(harness, config(await startMcpHttpServer(words)), ['big', 'huge'])
    expect(await resultOf(app, 'big')).toMatch(/^b{65000,}\n\[The result was truncated: it has 1048576 bytes/)
    expect(await resultOf(app, 'huge')).toBe("Error: this tool's server did not respond")
    expect(await resultOf(app, 'echo', '{"text":"hi"}')).toBe('echo: hi')
  })

  test('receives a cancellation when the client disconnects during a call', async () => {
    const server = await startMcpHttpServer(words)
    const app = await startWithMcp(harness, config(server), ['wait'])
    const { agent_key } = await app.createAgent(agentWith(['wait']))
    await harness.answerWith(toolCallResponse('streamed', [{ name: 'wait' }]), 1)
    const leaving = new AbortController()
    const body = { ...chatRequest('hello'), stream: true }
    const left = expect(
      app.call('POST', '/v1/chat/completions', { key: agent_key, body, signal: leaving.signal }),
    ).rejects.toThrow('aborted')
    expect(await eventually(async () => (await server.seen()).calls.length, 1)).toBe(1)
    leaving.abort()
    await left
    expect(await eventually(async () => (await server.seen()).cancelled.length, 1)).toBe(1)
  })

  test('can add a tool while it is connected', async () => {
    const server = await startMcpHttpServer(words)
    const app = await startWithMcp(harness, config(server), ['echo'])
    await server.add('late')
    await waitForTools(app, ['late'])
    expect(await resultOf(app, 'late')).toBe('late')
  })

  test('is asked for its tools again after it restarts', async () => {
    const server = await startMcpHttpServer(words)
    const app = await startWithMcp(harness, config(server), ['echo'])
    await server.restart(['--extra', 'new'])
    await waitForTools(app, ['new'])
    expect(await resultOf(app, 'new')).toBe('new')
  })

  test('cannot be called after a crash until it is restarted', async () => {
    const server = await startMcpHttpServer(words)
    const app = await startWithMcp(harness, config(server), ['echo', 'die'])
    expect(await resultOf(app, 'die')).toBe("Error: this tool's server did not respond")
    await server.kill()
    expect(await resultOf(app, 'echo', '{"text":"hi"}')).toMatch(/^Error: /)
    const again = await server.restart()
    const answered = async () => (await resultOf(app, 'echo', '{"text":"hi"}')) === 'echo: hi'
    expect(await eventually(answered, true)).toBe(true)
    expect((await again.seen()).calls).toEqual(['echo'])
  })
})

test('a tool call opens a new session if the MCP server has lost the old one', async () => {
  const server = await startMcpHttpServer()
  const app = await startWithMcp(harness, config(server), ['echo'])
  await server.forget()
  expect(await resultOf(app, 'echo', '{"text":"hi"}')).toBe('echo: hi')
  expect(await server.seen()).toMatchObject({ begun: 2, calls: ['echo'] })
})

test('the MCP session is closed when the service stops', async () => {
  const server = await startMcpHttpServer()
  const app = await startWithMcp(harness, config(server), ['echo'])
  await app.close()
  expect(await server.seen()).toMatchObject({ begun: 1, ended: 1 })
})

describe("an MCP server's redirect", () => {
  test('within the same origin is followed', async () => {
    const server = await startMcpHttpServer()
    await startWithMcp(harness, { near: { url: `${server.origin}/moved` } }, ['echo'])
  })

  test('to another origin is not followed', async () => {
    const [server, other] = [await startMcpHttpServer(), await startMcpHttpServer()]
    const url = `${server.origin}/moved?to=${encodeURIComponent(other.url)}`
    const app = await startWithMcp(
      harness,
      { far: { url, headers: { Authorization: 'Bearer mcp-key' } }, ...config(server) },
      ['echo'],
    )
    // A second request proves that the client has finished handling the first response.
    expect(await eventually(async () => (await server.seen()).moved > 1, true)).toBe(true)
    expect(app.service.deps.tools.list().map(({ name }) => name)).not.toContain('far__echo')
    expect(await other.seen()).toMatchObject({ authorizations: [] })
  })
})

describe('a tool name', () => {
  test("that two MCP servers share is prefixed with each server's name", async () => {
    const [one, two] = [await startMcpHttpServer(), await startMcpHttpServer()]
    const servers = { one: { url: one.url }, two: { url: two.url } }
    const app = await startWithMcp(harness, servers, ['one__echo', 'two__echo'])
    expect(app.service.deps.tools.find('echo')).toBeUndefined()
    expect(await resultOf(app, 'two__echo', '{"text":"hi"}')).toBe('echo: hi')
    expect([(await one.seen()).calls, (await two.seen()).calls]).toEqual([[], ['echo']])
  })

  test("that a host tool also uses refers to the host's tool", async () => {
    const server = await startMcpHttpServer()
    const app = await startWithMcp(harness, config(server), ['data'], {
      tools: { echo: tool(() => 'the host') },
    })
    expect(await resultOf(app, 'echo')).toBe('the host')
    expect(await resultOf(app, 'near__echo', '{"text":"hi"}')).toBe('echo: hi')
  })
})

test("a server starts even if an MCP server is unreachable, and reports the MCP server's tools as unavailable", async () => {
  const server = await startMcpHttpServer()
  await server.kill()
  const app = await startWithMcp(harness, config(server), [])
  expect(await resultOf(app, 'near__echo')).toBe("Error: the tool 'near__echo' is currently unavailable")
})

test('tool arguments and results are not logged, whether the call succeeds or fails', async () => {
  const { log, lines } = createLineLog()
  const server = await startMcpHttpServer()
  const app = await startWithMcp(harness, config(server), ['echo', 'huge'], { log })
  expect(await resultOf(app, 'echo', '{"text":"argument-7f3a"}')).toBe('echo: argument-7f3a')
  await resultOf(app, 'huge', '{"word":"argument-7f3a"}')
  await resultOf(app, 'die', '{"word":"argument-7f3a"}')
  expect(lines.join('')).toContain('MCP server did not respond')
  expect(lines.join('')).not.toMatch(/7f3a|hhhh|mcp-key/)
})
