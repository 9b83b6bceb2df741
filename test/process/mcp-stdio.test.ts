/** MCP servers that are programs of the operator's: what they are given, what becomes of what they say, and that none outlives us. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { say, startChatStand } from '../support/chat-stand.ts'
import { createLineLog } from '../support/log-lines.ts'
import { startWithMcp, stdioProgram, withMcp } from '../support/mcp.ts'
import { eventually, makeFolder, startServer } from '../support/process.ts'
import { agentWith, answerCalling, resultOf as findResult } from '../support/tools.ts'

vi.setConfig({ testTimeout: 60_000 })

const stand = await startChatStand()

const program = (more: object = {}, words: readonly string[] = []) => ({
  here: { command: process.execPath, args: [stdioProgram, ...words], ...more },
})

/** What the model is told of one call. */
const resultOf = (app: TestApp, name: string, args?: string) => findResult(stand, app, name, args)

/** Whether a process is there. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The ids a program has written down, once it has. */
async function readPids(path: string): Promise<number[]> {
  const read = () => readFile(path, 'utf8').catch(() => '')
  expect(await eventually(async () => (await read()) !== '', true)).toBe(true)
  return (await read()).split(' ').map(Number)
}

const areGone = (pids: readonly number[]) => eventually(async () => pids.some(isAlive), false)

describe('a program', () => {
  test('answers calls, and has of the environment only what the operator names and the search path', async () => {
    const folder = await makeFolder()
    const app = await startWithMcp(stand, program({ env: { GREETING: 'hi' }, cwd: folder }), ['echo'])
    expect(await resultOf(app, 'echo', '{"text":"hi"}')).toBe('echo: hi')
    const { PWD: _, ...environment } = JSON.parse(await resultOf(app, 'environment'))
    expect(Object.keys(environment).filter((name) => !name.startsWith('__'))).toEqual(['PATH', 'GREETING'])
  })

  test('that says too much, or ends, costs a round and is started again', async () => {
    const app = await startWithMcp(stand, program(), ['huge', 'die'])
    for (const name of ['huge', 'die']) {
      expect(await resultOf(app, name)).toBe('Error: the server of this tool did not respond')
      const answered = async () => (await resultOf(app, 'echo', '{"text":"hi"}')) === 'echo: hi'
      expect(await eventually(answered, true)).toBe(true)
    }
  })

  test('is told when the caller leaves', async () => {
    const app = await startWithMcp(stand, program(), ['wait'])
    const { agent_key } = await app.createAgent(agentWith(['wait', 'seen']))
    await stand.answerWith(answerCalling('streamed', [{ name: 'wait' }]), 1)
    const leaving = new AbortController()
    const body = { ...say('hello'), stream: true }
    const call = app.call('POST', '/v1/chat/completions', { key: agent_key, body, signal: leaving.signal })
    const left = expect(call).rejects.toThrow('aborted')
    const seen = async () => JSON.parse(await resultOf(app, 'seen'))
    expect(await eventually(async () => (await seen()).calls.includes('wait'), true)).toBe(true)
    leaving.abort()
    await left
    expect(await eventually(async () => (await seen()).cancelled.length, 1)).toBe(1)
  })

  test('has what it says on standard error in the log, for those who debug', async () => {
    const { log, lines } = createLineLog()
    await startWithMcp(stand, program(), ['echo'], { log })
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ level: 20, mcp: 'here', stderr: 'the program speaks' }),
    )
  })

  test('that is not there is told of, and holds nothing up', async () => {
    const { log, lines } = createLineLog()
    const app = await startWithMcp(stand, program({ command: '/gone/program' }), [], { log })
    expect(await resultOf(app, 'here__echo')).toBe("Error: the tool 'here__echo' is currently unavailable")
    const told = async () =>
      lines
        .map((line) => JSON.parse(line))
        .some(({ level, mcp, code }) => level === 40 && mcp === 'here' && code === 'ENOENT')
    expect(await eventually(told, true)).toBe(true)
  })
})

describe('a program that does not want to end', () => {
  test('ends with the service, and so do those it has started', async () => {
    const pids = join(await makeFolder(), 'pids')
    const app = await startWithMcp(stand, program({}, ['--stay', '--pids', pids]), ['echo'])
    const started = await readPids(pids)
    expect(started.filter(isAlive)).toHaveLength(2)
    await app.close()
    expect(await areGone(started)).toBe(false)
  })

  test.each<NodeJS.Signals>(['SIGKILL', 'SIGTERM'])('ends when the service does of a %s', async (signal) => {
    const folder = await makeFolder()
    const pids = join(folder, 'pids')
    const env = await withMcp(program({}, ['--stay', '--pids', pids]))
    const server = await startServer({ folder, env: { ...env, PARLEY_SHUTDOWN_SECONDS: '1' } })
    const started = await readPids(pids)
    server.kill(signal)
    await server.ended
    expect(await areGone(started)).toBe(false)
  })
})
