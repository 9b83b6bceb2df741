/** Tests `agents apply --url`, which uses the REST API of a server. */
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { makeFolder } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const GREETER = '\uFEFF# first line\nname: Greeter\nmodel: mock\ninstructions: Greet people.\n'
const MARKDOWN = '---\nname: Wörk Über\n---\n\nHelp people.\n'

async function makeFiles(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await makeFolder()
  await mkdir(join(folder, 'agents'))
  await putFiles(folder, files)
  return folder
}

async function putFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'agents', name), text)
}

const run = (folder: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runCommandInProcess(['agents', 'apply', 'agents', ...words], { folder, env })

/** Applies `agents/` to the server; returns the standard output. */
async function apply(folder: string, { url, key }: TestApp, ...words: string[]): Promise<string> {
  const { stdout, ...end } = await run(folder, ['--url', url, ...words], { PARLEY_KEY: key })
  expect(end).toEqual({ code: 0, signal: null, stderr: '' })
  return stdout
}

/** Runs a command that must fail; returns its error. */
async function failureOf(
  folder: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stderr } = await run(folder, words, env)
  expect(code).toBe(1)
  expect(stderr).toMatch(/^parley: /m)
  expect(stderr).not.toMatch(/^\s+at /m)
  return stderr
}

/** Starts a server with this listener; returns its address. */
async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Returns an address on which no server listens. */
async function freeUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

const yamlOf = async (app: TestApp, id: string) => (await app.call('GET', `/v1/agents/${id}`)).body.yaml

describe('agents apply --url', () => {
  test('prints its plan without access to the database and changes nothing unless --yes is set', async () => {
    const app = await startApp()
    const folder = await makeFiles({ 'a.yaml': GREETER })
    const plan = await apply(folder, app)
    expect(plan).toBe(
      '+ create  agents/a.yaml  "Greeter"\nNothing was changed. Add --yes to make these changes.\n',
    )
    const json = JSON.parse(await apply(folder, app, '--json'))
    const file = { file: 'agents/a.yaml', action: 'create', id: null, name: 'Greeter' }
    expect(json).toEqual({ applied: false, files: [file], untouched: [] })
    expect((await app.call('GET', '/v1/agents')).body.data).toEqual([])
  })

  test('creates and updates agents byte for byte and does not change other agents', async () => {
    const app = await startApp()
    const { agent_id: other } = await app.createAgent('name: Other\ninstructions: Hi.\n')
    const folder = await makeFiles({ 'a.yaml': GREETER, 'b.md': MARKDOWN })
    const words = ['--yes', '--show-keys', '--json']
    const { files } = JSON.parse(await apply(folder, app, ...words))
    const [{ id: a, agent_key: agentKey }, { id: b }] = files
    expect([await yamlOf(app, a), await yamlOf(app, b)]).toEqual([GREETER, MARKDOWN])
    expect((await app.call('GET', '/v1/agents/me', { key: agentKey })).body.id).toBe(a)
    await putFiles(folder, { 'a.yaml': GREETER.replace('people', 'guests') })
    expect((await apply(folder, app, '--yes')).split('\n')).toEqual([
      `~ update  agents/a.yaml  "Greeter" (${a})`,
      '    - instructions: Greet people.',
      '    + instructions: Greet guests.',
      `= same    agents/b.md  "Wörk Über" (${b})`,
      `  unchanged, no file: "Other" (${other})`,
      `updated ${a}`,
      '',
    ])
    expect(await apply(folder, app, '--yes')).toContain('\nAll agents are up to date.\n')
    expect((await app.call('GET', `/v1/agents/${a}`)).body.version).toBe(2)
  })

  test('stores the note with each new version', async () => {
    const app = await startApp()
    const folder = await makeFiles({ 'greeter.yaml': GREETER, 'helper.md': MARKDOWN })
    await apply(folder, app, '--yes', '--note', 'First version')
    await putFiles(folder, { 'greeter.yaml': `${GREETER}temperature: 0.5\n` })
    await apply(folder, app, '--yes', '--note', 'Less random')
    const { body } = await app.call('GET', '/v1/agents')
    const { id } = body.data.find(({ name }: { name: string }) => name === 'Greeter')
    const versions = (await app.call('GET', `/v1/agents/${id}/versions`)).body.data
    expect(versions.map(({ note }: { note: string }) => note)).toEqual(['Less random', 'First version'])
    expect(versions[1].yaml).toBe(GREETER)
    expect(await failureOf(folder, ['--yes', '--note', 'x'.repeat(201)])).toContain(
      '--note must be at most 200 characters.',
    )
  })

  test('reads all pages of a long list', async () => {
    const app = await startApp()
    const names = Array.from({ length: 101 }, (_, index) => `Agent ${index}`)
    for (const name of names) await app.createAgent(`name: ${name}\ninstructions: Hi.\n`)
    const folder = await makeFiles({ 'a.yaml': 'name: Agent 100\ninstructions: Hi.\n' })
    const { files, untouched } = JSON.parse(await apply(folder, app, '--json'))
    expect([files[0].action, untouched.length]).toEqual(['same', 100])
  })

  test('prefers --key to PARLEY_KEY and accepts a URL that ends in a slash', async () => {
    const app = await startApp()
    const folder = await makeFiles({ 'a.yaml': GREETER })
    const words = ['--url', `${app.url}/`, '--key', app.key]
    expect(await run(folder, words, { PARLEY_KEY: 'svc_wrong' })).toMatchObject({ code: 0, stderr: '' })
  })

  test('waits and continues when the server rate-limits its key', async () => {
    let calls = 0
    const url = await listen((_request, response) => {
      calls += 1
      if (calls === 1) response.writeHead(429, { 'Retry-After': '0' }).end('{"error": "later"}')
      else response.end('{"object": "list", "data": []}')
    })
    const { key } = await startApp()
    const end = await run(await makeFiles({ 'a.yaml': GREETER }), ['--url', url], { PARLEY_KEY: key })
    expect(end).toMatchObject({ code: 0, stderr: expect.stringContaining('continuing in 0 s') })
    expect(calls).toBe(2)
  })
})

describe('agents apply --url fails with a clear error', () => {
  test('if no complete parent key is set, without printing the key', async () => {
    const app = await startApp()
    const { agent_key: agentKey } = await app.createAgent()
    const folder = await makeFiles({ 'a.yaml': GREETER })
    const url = ['--url', app.url]
    expect(await failureOf(folder, url)).toContain('set PARLEY_KEY, or use --key')
    expect(await failureOf(folder, [...url, '--key', agentKey])).toContain('--key is an agent key')
    const wrong = `${app.key}x`
    const failure = await failureOf(folder, url, { PARLEY_KEY: wrong })
    expect(failure).toContain('PARLEY_KEY is not a complete key')
    expect(failure).not.toContain(wrong)
    expect(await failureOf(folder, [...url, '--key', app.key.slice(0, 16)])).toContain('complete parent key')
  })

  test('with a key that the server does not recognize', async () => {
    const app = await startApp()
    const { key: stranger } = await startApp()
    const folder = await makeFiles({ 'a.yaml': GREETER })
    const failure = await failureOf(folder, ['--url', app.url, '--yes'], { PARLEY_KEY: stranger })
    expect(failure).toBe(
      `parley: ${app.url} rejected the key: The API key is invalid. Check --key or PARLEY_KEY.\n`,
    )
  })

  test('when the server is unreachable, redirects, or is not a Parley server', async () => {
    const { key } = await startApp()
    const env = { PARLEY_KEY: key }
    const folder = await makeFiles({ 'a.yaml': GREETER })
    const closed = await freeUrl()
    expect(await failureOf(folder, ['--url', closed], env)).toBe(
      `parley: Cannot reach ${closed} (ECONNREFUSED).\n`,
    )
    const page = await listen((_request, response) => response.end('<html>'))
    expect(await failureOf(folder, ['--url', page], env)).toContain('did not respond like a Parley server')
    const missing = await listen((_request, response) => response.writeHead(404).end('no'))
    expect(await failureOf(folder, ['--url', missing], env)).toContain('responded with HTTP 404')
    const keys: unknown[] = []
    const elsewhere = await listen((request, response) => {
      keys.push(request.headers.authorization)
      response.end()
    })
    const moved = await listen((_request, response) => response.writeHead(308, { Location: elsewhere }).end())
    expect(await failureOf(folder, ['--url', moved], env)).toContain(`redirects to ${elsewhere}`)
    expect(keys).toEqual([])
  })

  test.each(['nowhere', 'ftp://localhost', 'http://user:pass@localhost', 'http://localhost/?a=b'])(
    'with the URL %s',
    async (url) => {
      const { key } = await startApp()
      expect(await failureOf(await makeFolder(), ['--url', url], { PARLEY_KEY: key })).toContain('--url must')
    },
  )

  test('after a warning when the URL is neither https:// nor on this machine', async () => {
    const { key } = await startApp()
    const folder = await makeFiles({ 'a.yaml': GREETER })
    const failure = await failureOf(folder, ['--url', 'http://parley.invalid'], { PARLEY_KEY: key })
    expect(failure).toMatch(/^warning: --url is not https:/)
    expect(failure).toContain('Cannot reach http://parley.invalid (')
  })

  test('when a file is invalid, before it sends any request', async () => {
    const { key } = await startApp()
    const folder = await makeFiles({ 'a.yaml': GREETER, 'b.yaml': 'name: B\n' })
    const failure = await failureOf(folder, ['--url', 'http://127.0.0.1:9', '--yes'], { PARLEY_KEY: key })
    expect(failure).toContain(
      'Nothing was changed. These files contain errors:\n  agents/b.yaml: instructions',
    )
  })

  test('when the server rejects a file, with the name of the file and the changes already made', async () => {
    const app = await startApp({ PARLEY_MAX_AGENTS: '1' })
    const folder = await makeFiles({ 'a.yaml': GREETER, 'b.md': MARKDOWN })
    const failure = await failureOf(folder, ['--url', app.url, '--yes'], { PARLEY_KEY: app.key })
    expect(failure).toMatch(
      /^parley: agents\/b\.md: This parent key already has 1 agents.* Changes made before the error: created agent-\w+\.\n$/,
    )
  })

  test('when an agent has changed since it was read', async () => {
    const app = await startApp()
    const { agent_id: id } = await app.createAgent()
    const url = await listen(async (request, response) => {
      const chunks = await request.toArray()
      if (request.method === 'PUT')
        await app.call('PUT', `/v1/agents/${id}`, { body: { yaml: MARKDOWN, format: 'markdown' } })
      const { authorization = '', 'content-type': type, 'if-match': match } = request.headers
      const forwarded = await fetch(app.url + request.url, {
        method: request.method as string,
        headers: {
          authorization,
          ...(type && { 'content-type': type }),
          ...(match && { 'if-match': match }),
        },
        ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
      })
      response.writeHead(forwarded.status, { 'Content-Type': 'application/json' }).end(await forwarded.text())
    })
    const folder = await makeFiles({ [`a.${id}.yaml`]: GREETER })
    const failure = await failureOf(folder, ['--url', url, '--yes'], { PARLEY_KEY: app.key })
    expect(failure).toContain('If-Match: the agent has changed and is now at version 2')
    expect(await yamlOf(app, id)).toBe(MARKDOWN)
  })
})

test('a command does not report PARLEY_KEY as an unknown setting', async () => {
  const folder = await makeFolder()
  const words = ['keys', 'create', '--name', 'first']
  expect(await runCommandInProcess(words, { folder, env: { PARLEY_KEY: 'svc_x' } })).toMatchObject({
    stderr: '',
  })
})
