/** Tests MCP servers that the service runs as child processes. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { StdioTransport } from '../../src/tools/mcp/stdio.ts'
import { Watchdog } from '../../src/tools/mcp/watchdog.ts'
import type { TestApp } from '../support/app.ts'
import { chatRequest, startChatHarness } from '../support/chat-harness.ts'
import { createLineLog } from '../support/log-lines.ts'
import { startWithMcp, stdioProgram, withMcp } from '../support/mcp.ts'
import { eventually, makeFolder, startServer } from '../support/process.ts'
import { agentWith, resultOf as findResult, toolCallResponse } from '../support/tools.ts'

vi.setConfig({ testTimeout: 60_000 })

const harness = await startChatHarness()

const program = (more: object = {}, words: readonly string[] = []) => ({
  here: { command: process.execPath, args: [stdioProgram, ...words], ...more },
})

/** Makes the model call a tool; returns the result that the model receives. */
const resultOf = (app: TestApp, name: string, args?: string) => findResult(harness, app, name, args)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Waits until an MCP server has written its and its child's process ids to the file; returns them. */
async function readPids(path: string): Promise<number[]> {
  const read = () => readFile(path, 'utf8').catch(() => '')
  expect(await eventually(async () => (await read()) !== '', true)).toBe(true)
  return (await read()).split(' ').map(Number)
}

/** Waits until no process is alive; returns false if one is alive after the wait. */
const areGone = (pids: readonly number[]) => eventually(async () => !pids.some(isAlive), true)

describe('a stdio MCP server', () => {
  test('receives only PATH and the configured variables in its environment', async () => {
    const folder = await makeFolder()
    const app = await startWithMcp(harness, program({ env: { GREETING: 'hi' }, cwd: folder }), ['echo'])
    expect(await resultOf(app, 'echo', '{"text":"hi"}')).toBe('echo: hi')
    const { PWD: _, ...environment } = JSON.parse(await resultOf(app, 'environment'))
    expect(Object.keys(environment).filter((name) => !name.startsWith('__'))).toEqual(['PATH', 'GREETING'])
  })

  test('is restarted after it exits or sends too much data', async () => {
    const app = await startWithMcp(harness, program(), ['huge', 'die'])
    for (const name of ['huge', 'die']) {
      expect(await resultOf(app, name)).toBe("Error: this tool's server did not respond")
      const answered = async () => (await resultOf(app, 'echo', '{"text":"hi"}')) === 'echo: hi'
      expect(await eventually(answered, true)).toBe(true)
    }
  })

  test('receives a cancellation when the client disconnects during a call', async () => {
    const app = await startWithMcp(harness, program(), ['wait'])
    const { agent_key } = await app.createAgent(agentWith(['wait', 'seen']))
    await harness.answerWith(toolCallResponse('streamed', [{ name: 'wait' }]), 1)
    const leaving = new AbortController()
    const body = { ...chatRequest('hello'), stream: true }
    const call = app.call('POST', '/v1/chat/completions', { key: agent_key, body, signal: leaving.signal })
    const left = expect(call).rejects.toThrow('aborted')
    const seen = async () => JSON.parse(await resultOf(app, 'seen'))
    expect(await eventually(async () => (await seen()).calls.includes('wait'), true)).toBe(true)
    leaving.abort()
    await left
    expect(await eventually(async () => (await seen()).cancelled.length, 1)).toBe(1)
  })

  test('has its standard error logged at debug level', async () => {
    const { log, lines } = createLineLog()
    await startWithMcp(harness, program(), ['echo'], { log })
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ level: 20, mcp: 'here', stderr: 'the program speaks' }),
    )
  })

  test('whose command does not exist is reported in a log warning', async () => {
    const { log, lines } = createLineLog()
    const app = await startWithMcp(harness, program({ command: '/gone/program' }), [], { log })
    expect(await resultOf(app, 'here__echo')).toBe("Error: the tool 'here__echo' is currently unavailable")
    const isLogged = async () =>
      lines
        .map((line) => JSON.parse(line))
        .some(({ level, mcp, code }) => level === 40 && mcp === 'here' && code === 'ENOENT')
    expect(await eventually(isLogged, true)).toBe(true)
  })
})

describe('a stdio MCP server that ignores signals', () => {
  test('is killed together with its child processes when the service stops', async () => {
    const pids = join(await makeFolder(), 'pids')
    const app = await startWithMcp(harness, program({}, ['--stay', '--pids', pids]), ['echo'])
    const started = await readPids(pids)
    expect(started.filter(isAlive)).toHaveLength(2)
    await app.close()
    expect(await areGone(started)).toBe(true)
  })

  test.each<NodeJS.Signals>(['SIGKILL', 'SIGTERM'])(
    'is killed when the service receives %s',
    async (signal) => {
      const folder = await makeFolder()
      const pids = join(folder, 'pids')
      const env = await withMcp(program({}, ['--stay', '--pids', pids]))
      const server = await startServer({ folder, env: { ...env, PARLEY_SHUTDOWN_SECONDS: '1' } })
      const started = await readPids(pids)
      server.kill(signal)
      await server.ended
      expect(await areGone(started)).toBe(true)
    },
  )
})

test('a stdio MCP server whose output cannot be read is stopped, and the error is reported', async () => {
  const watchdog = new Watchdog()
  const { log } = createLineLog()
  const here = {
    kind: 'stdio' as const,
    name: 'here',
    command: process.execPath,
    args: [stdioProgram],
    env: {},
    cwd: undefined,
  }
  const transport = new StdioTransport(here as never, watchdog, log)
  const closed = new Promise<void>((resolve) => {
    transport.onclose = resolve
  })
  const errors: string[] = []
  transport.onerror = ({ message }) => errors.push(message)
  await transport.start()
  const { stdout, stderr } = Reflect.get(transport, 'child') as ChildProcessWithoutNullStreams
  stderr.emit('error', new Error('stderr failed'))
  stdout.destroy(new Error('stdout failed'))
  await closed
  expect(errors).toEqual(['stderr failed', 'stdout failed'])
  watchdog.close()
})
