/** Tests the checks of `parley doctor` on working and on broken installations. */
import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openApp } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { startUpstream } from '../support/start-upstream.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

interface Check {
  readonly check: string
  readonly state: string
  readonly message: string
}

/** Runs `parley doctor --json`; returns the checks as a list and by name. */
async function runDoctor(folder: string, env: Record<string, string> = {}) {
  const end = await runCommandInProcess(['doctor', '--json'], { folder, env: { PORT: '0', ...env } })
  expect(end.stderr).toBe('')
  const { ok, checks }: { ok: boolean; checks: Check[] } = JSON.parse(end.stdout)
  expect({ ok, code: end.code }).toEqual({ ok: end.code === 0, code: ok ? 0 : 1 })
  const found = Object.fromEntries(checks.map(({ check, state, message }) => [check, `${state}: ${message}`]))
  return { ok, found, checks }
}

/** Starts a server in a new folder, creates an agent and stops the server. */
async function makeInstallation(): Promise<string> {
  const folder = await makeFolder()
  const app = await openApp({ PARLEY_DATA_DIR: join(folder, 'data') })
  await app.createAgent()
  await app.close()
  return folder
}

/** Listens on a free port and returns it. */
async function occupyPort(): Promise<number> {
  const server = createServer((socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

describe('doctor on a healthy machine', () => {
  test('passes every check, apart from warnings about free space and process isolation', async () => {
    const { code, stdout, stderr } = await runCommandInProcess(['doctor'], {
      folder: await makeInstallation(),
      env: { PORT: '0' },
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const names = [
      'node',
      'configuration',
      'data directory',
      'free space',
      'database',
      'secret',
      'server',
      'conversations',
      'stored files',
    ]
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => /^\S+ +(\S+(?: \S+)?) {2,}\S/.exec(line)?.[1])).toEqual([
      ...names,
      'backend',
      'prices',
      'ffmpeg',
      'isolation',
      'clock',
      'port',
    ])
    for (const line of lines) expect(line).toMatch(/^ok {4}\w|^warn {2}(free space|isolation)/)
    expect(stdout).toMatch(/database +SQLite \d+\.\d+\.\d+, no corruption found, up to date\n/)
  })

  test('creates nothing before the first start', async () => {
    const folder = await makeFolder()
    const { ok, found } = await runDoctor(folder)
    expect(ok).toBe(true)
    expect(found['data directory']).toMatch(/^ok: .* the first start creates it$/)
    expect(found.database).toMatch(/^warn: .*data has no database yet/)
    expect(found.secret).toMatch(/^ok: no secret yet/)
    expect(await readdir(folder)).toEqual([])
  })

  test('prints its usage with --help', async () => {
    const { stdout } = await runCommandInProcess(['doctor', '--help'], { folder: await makeFolder() })
    expect(stdout).toMatch(/^Usage: parley doctor \[options\]\n\n\w/)
  })
})

describe('doctor while a server runs', () => {
  test("reports the server's process id and port, and the server keeps running", async () => {
    const folder = await makeFolder()
    const { port } = new URL((await startServer({ folder: await makeFolder() })).url)
    const apart = { PORT: port, PARLEY_DATA_DIR: join(folder, 'apart') }
    expect((await runDoctor(folder, apart)).found.port).toBe(
      `ok: Parley is already running on http://127.0.0.1:${port}`,
    )
    const env = { PARLEY_ALLOWED_HOSTS: 'chat.example.org' }
    const server = await startServer({ folder, env })
    const { ok, found } = await runDoctor(folder, { ...env, PORT: new URL(server.url).port })
    expect(ok).toBe(true)
    expect(found.server).toMatch(new RegExp(`^ok: a server \\(process ${server.pid}\\) is running on `))
    expect(found.port).toBe(`ok: Parley is already running on ${server.url}`)
    expect(await server.stop()).toMatchObject({ code: 0 })
  })
})

test('doctor warns when a running server sees many agent keys from one IP address', async () => {
  const server = await startServer({ folder: await makeFolder() })
  const { port } = new URL(server.url)
  for (let made = 0; made < 10; made++) {
    const { body } = await callServer(server.url, 'POST', '/v1/agents', server.key, {
      yaml: 'name: A\ninstructions: B\n',
    })
    await callServer(server.url, 'GET', '/v1/models', body.agent_key)
  }
  const { ok, found } = await runDoctor(await makeFolder(), { PORT: port })
  expect([ok, found['client addresses']]).toEqual([
    true,
    expect.stringMatching(/^warn: .*PARLEY_TRUSTED_PROXIES$/),
  ])
})

describe('doctor prints a remedy for', () => {
  test('each invalid setting', async () => {
    const { checks } = await runDoctor(await makeFolder(), { PORT: 'http', PARLEY_BACKEND: 'gateway' })
    const failed = checks.filter(({ state }) => state === 'fail').map(({ message }) => message)
    expect(failed).toEqual([
      expect.stringContaining('PORT must be a whole number'),
      expect.stringContaining('PARLEY_GATEWAY_URL is required'),
    ])
  })

  test('a port that is in use', async () => {
    const port = await occupyPort()
    const { ok, found } = await runDoctor(await makeFolder(), { PORT: String(port) })
    expect(ok).toBe(false)
    expect(found.port).toBe(
      `fail: Port ${port} on 127.0.0.1 is used by another program; set PORT to a free port.`,
    )
  })

  test('a data directory that is a file or contains other files', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, 'file'), '')
    await writeFile(join(folder, 'thesis.odt'), '')
    const path = (name: string) => ({ PARLEY_DATA_DIR: join(folder, name) })
    expect((await runDoctor(folder, path('file'))).found['data directory']).toMatch(/^fail: .*EEXIST/)
    expect((await runDoctor(folder, path('file/data'))).found['data directory']).toMatch(/^fail: .*is a file/)
    const { found } = await runDoctor(folder, { PARLEY_DATA_DIR: folder })
    expect(found['data directory']).toMatch(/^fail: .*contains other files/)
    expect(found.database).toBeUndefined()
  })

  test('a damaged database', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, 'data'), { mode: 0o700 })
    await writeFile(join(folder, 'data/parley.db'), 'this is no database'.repeat(400))
    const { ok, found } = await runDoctor(folder)
    expect(ok).toBe(false)
    expect(found.database).toMatch(/^fail: The database .* is damaged .*restore it from a backup/)
  })

  test('a secret that is missing or different', async () => {
    const folder = await makeInstallation()
    const other = { PARLEY_SECRET: 'another secret of at least 32 bytes' }
    expect((await runDoctor(folder, other)).found.secret).toMatch(
      /^fail: .*encrypted with a different secret/,
    )
    const former = (await readFile(join(folder, 'data/secret'), 'utf8')).trim()
    const { found } = await runDoctor(folder, { ...other, PARLEY_SECRET_PREVIOUS: former })
    expect(found.secret).toMatch(
      /^ok: PARLEY_SECRET decrypts the stored agent keys; remove PARLEY_SECRET_PREVIOUS 30 days after/,
    )
    await rm(join(folder, 'data/secret'))
    expect((await runDoctor(folder)).found.secret).toMatch(/^fail: The file .*secret is missing/)
    expect(await readdir(join(folder, 'data'))).not.toContain('secret')
  })

  test('a model provider that is unavailable or rejects the key', async () => {
    const folder = await makeFolder()
    const gone = {
      PARLEY_BACKEND: 'gateway',
      PARLEY_GATEWAY_URL: `http://127.0.0.1:${await occupyPort()}/v1`,
    }
    expect((await runDoctor(folder, gone)).found.backend).toMatch(/^fail: .*check PARLEY_GATEWAY_URL/)
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const there = { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url }
    expect((await runDoctor(folder, there)).found.backend).toMatch(/^ok: .* lists [1-9]\d* models$/)
    await upstream.script('/v1/models', '{{up:status 401}}')
    expect((await runDoctor(folder, there)).found.backend).toMatch(/^fail: .*PARLEY_GATEWAY_API_KEY/)
    await upstream.script('/v1/models', '{{up:hang}}')
    expect((await runDoctor(folder, there)).found.backend).toMatch(/^fail: .*returned no model list/)
  })
})

test('doctor checks each model provider and names the incorrect setting', async () => {
  const upstreams = await Promise.all([startUpstream(), startUpstream(), startUpstream()])
  onTestFinished(async () => void (await Promise.all(upstreams.map((upstream) => upstream.stop()))))
  const [well, locked, empty] = upstreams
  await locked.script('/v1/models', '{{up:status 401}}')
  await empty.script('/v1/models', '{{up:status 404}}')
  const folder = await makeFolder()
  const entries = Object.entries({ well, locked, gateway: empty }).map(([name, { url }]) => ({ name, url }))
  const lines = entries.map(({ name, url }) => `  ${name}: { url: "${url}" }\n`)
  await writeFile(join(folder, 'parley.yaml'), `providers:\n${lines.join('')}  play: { kind: mock }\n`)
  const { ok, found, checks } = await runDoctor(folder, { PARLEY_CONFIG: 'parley.yaml' })
  expect(ok).toBe(false)
  const inFile = (setting: string) => `providers.${setting} in the PARLEY_CONFIG file`
  expect(found).toMatchObject({
    'backend well': `ok: ${well.url} lists 3 models`,
    'backend locked': `fail: ${locked.url} returned 401; set ${inFile('locked.api_key')} to a valid key`,
    'backend gateway': `warn: ${empty.url}/models does not exist; check PARLEY_GATEWAY_URL (or ${inFile('gateway.url')})`,
    'backend play': 'ok: mock',
  })
  expect(checks.filter(({ check }) => check.startsWith('backend')).map(({ check }) => check)).toEqual([
    'backend well',
    'backend locked',
    'backend gateway',
    'backend play',
  ])
  await writeFile(join(folder, 'parley.yaml'), 'providers: { one: { kind: moc, url: x } }')
  const wrong = await runDoctor(folder, { PARLEY_CONFIG: 'parley.yaml' })
  expect(wrong.found.configuration).toMatch(
    /^fail: .*parley\.yaml: providers\.one\.kind: must be gateway, local or mock/,
  )
})

test('doctor checks a local model server and names the command that starts it', async () => {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const folder = await makeFolder()
  const look = async (url: string) => {
    const { found } = await runDoctor(folder, { PARLEY_BACKEND: 'local', PARLEY_LOCAL_URL: url })
    return found.backend
  }
  expect(await look(upstream.origin)).toBe(`ok: ${upstream.url} lists 3 models`)
  await upstream.script('/v1/models', '{{up:body {"object":"list","data":null}}}')
  expect(await look(upstream.origin)).toBe(
    `warn: ${upstream.url} lists no models; add one, for example with \`ollama pull llama3.2\``,
  )
  const setting = 'PARLEY_LOCAL_URL (or providers.local.url in the PARLEY_CONFIG file)'
  await upstream.script('/v1/models', '{{up:status 500}}')
  expect(await look(upstream.origin)).toBe(`fail: ${upstream.url} returned 500; check ${setting}`)
  await upstream.stop()
  expect(await look(upstream.origin)).toBe(
    `fail: No model server is listening at ${upstream.origin}; start Ollama (\`ollama serve\`) or llama-server there; check ${setting}`,
  )
})

describe('doctor warns about', () => {
  test('external programs that are missing or fail to run', async () => {
    const folder = await makeFolder()
    const bare = await runDoctor(folder, { PATH: folder })
    expect(bare.ok).toBe(true)
    expect(bare.found.ffmpeg).toMatch(/^warn: ffmpeg is not installed, .* `apt-get install ffmpeg`$/)
    expect(bare.found.isolation).toMatch(/^warn: neither bubblewrap nor prlimit/)
    for (const name of ['ffmpeg', 'ffprobe', 'bwrap', 'prlimit'])
      await writeFile(join(folder, name), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    const broken = await runDoctor(folder, { PATH: folder })
    expect(broken.found.ffmpeg).toMatch(/^warn: .*ffmpeg does not run/)
    expect(broken.found.isolation).toMatch(/^warn: bubblewrap cannot create namespaces/)
  })

  test('unknown settings, data that other users can access, and in-memory data', async () => {
    const folder = await makeInstallation()
    await chmod(join(folder, 'data/secret'), 0o644)
    await chmod(join(folder, 'data'), 0o777)
    const { ok, found } = await runDoctor(folder, { PARLEY_PROT: '1' })
    expect(ok).toBe(true)
    expect(found.configuration).toMatch(/^warn: PARLEY_PROT is not a setting/)
    expect(found.secret).toMatch(/^warn: .*mode 644.*chmod 600/)
    expect(found['data directory']).toMatch(/^warn: .*chmod 700/)
    const memory = await runDoctor(folder, { PARLEY_DATA_DIR: ':memory:' })
    expect(memory.found['data directory']).toMatch(/^warn: PARLEY_DATA_DIR is :memory:/)
  })
})
