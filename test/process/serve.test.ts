/** Tests that `parley serve` reports invalid settings and directories in one sentence with exit code 1. */
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { callServer, makeFolder, type RunOptions, runParley, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const isRoot = process.getuid?.() === 0
const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
const cannotBeNobody = isRoot && spawnSync('setpriv', ['--version']).status !== 0

/** Runs `serve`, which must fail with exit code 1 and no stack trace; returns its standard error. */
async function failureOf(options: RunOptions): Promise<string> {
  const { stderr, ...end } = await runParley(['serve'], { ...options, env: { PORT: '0', ...options.env } })
  expect(end).toEqual({ code: 1, signal: null, stdout: '' })
  expect(stderr).toMatch(/^parley: /)
  expect(stderr).not.toMatch(/^\s+at /m)
  return stderr
}

/** Like `failureOf`, but expects an error of exactly one line. */
async function errorLineOf(options: RunOptions): Promise<string> {
  const text = await failureOf(options)
  expect(text.match(/\n/g)).toHaveLength(1)
  return text.trim()
}

describe('an invalid setting', () => {
  test('is reported with all other invalid settings and without its value', async () => {
    const text = await failureOf({
      folder: await makeFolder(),
      env: {
        PORT: 'http',
        LOG_LEVEL: 'loud',
        PARLEY_SECRET: 'a short secret',
        PARLEY_PARENT_KEY: 'svc_typo',
        DATABASE_URL: 'postgres://me:hunter2@db',
        PARLEY_BACKEND: 'gateway',
      },
    })
    for (const name of ['PORT', 'LOG_LEVEL', 'PARLEY_SECRET', 'PARLEY_PARENT_KEY', 'DATABASE_URL']) {
      expect(text).toMatch(new RegExp(`^ {2}- ${name} .*\\.$`, 'm'))
    }
    expect(text).toContain('PARLEY_GATEWAY_URL is required with PARLEY_BACKEND=gateway.')
    expect(text).not.toMatch(/loud|a short secret|svc_typo|hunter2/)
  })

  test('prevents startup before anything is written to disk', async () => {
    const folder = await makeFolder()
    await failureOf({ folder, env: { LOG_LEVEL: 'loud' } })
    expect(await readdir(folder)).toEqual([])
  })

  test('is reported when HOST is not an address of this machine', async () => {
    expect(await errorLineOf({ folder: await makeFolder(), env: { HOST: '192.0.2.1' } })).toBe(
      'parley: This machine has no address 192.0.2.1; set HOST to one of its addresses.',
    )
  })

  test('is reported in one sentence when HOST is an unknown host name', async () => {
    expect(await errorLineOf({ folder: await makeFolder(), env: { HOST: 'nowhere.invalid' } })).toContain(
      'nowhere.invalid',
    )
  })

  test('causes only a warning, with a suggestion, if its name is unknown', async () => {
    const server = await startServer({ folder: await makeFolder(), env: { PARLEY_DATADIR: '/elsewhere' } })
    expect(server.stderr).toBe(
      'warning: PARLEY_DATADIR is not a setting and is ignored; did you mean PARLEY_DATA_DIR?\n',
    )
  })
})

describe('.env in the working directory', () => {
  test('is read, and environment variables override it', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, '.env'), 'PARLEY_DATA_DIR=./from-file\nLOG_LEVEL=loud\nPORT=0\n')
    const server = await startServer({ folder, env: { LOG_LEVEL: 'error', PORT: ' ' } })
    expect((await readdir(folder)).sort()).toEqual(['.env', 'from-file'])
    expect((await server.stop()).code).toBe(0)
  })

  test('causes an error that contains its path if it cannot be read', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, '.env'))
    const text = await errorLineOf({ folder })
    expect(text).toContain(join(folder, '.env'))
    expect(text).toContain('EISDIR')
  })
})

describe('a data directory', () => {
  test('is rejected and not changed if it contains other files but no database', async () => {
    const folder = await makeFolder()
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'data', 'thesis.txt'), 'mine')
    expect(await errorLineOf({ folder })).toContain('(such as thesis.txt)')
    expect(await readdir(join(folder, 'data'))).toEqual(['thesis.txt'])
  })

  test.skipIf(cannotBeNobody)(
    'causes an error that contains its path and the current user if it is not writable',
    async () => {
      const folder = await makeFolder()
      await chmod(folder, 0o755)
      await mkdir(join(folder, 'data'), { mode: 0o555 })
      const text = await errorLineOf({ folder, wrapper: isRoot ? asNobody : [] })
      expect(text).toMatch(/The data directory \S+\/data is not usable by .*uid \d+.* \(EACCES\)/)
    },
  )

  test("causes an error that contains the other server's process id if it is in use", async () => {
    const folder = await makeFolder()
    const first = await startServer({ folder })
    expect(await errorLineOf({ folder })).toMatch(
      new RegExp(`Another Parley server \\(process ${first.pid}\\) is using the data directory \\S+/data;`),
    )
    expect((await callServer(first.url, 'GET', '/readyz')).status).toBe(200)
  })
})

describe('the server secret', () => {
  /** Creates an installation with one agent, and stops its server. */
  async function makeInstallation(env: Record<string, string> = {}): Promise<string> {
    const folder = await makeFolder()
    const server = await startServer({ folder, env })
    const yaml = 'name: Greeter\ninstructions: Greet people.\n'
    expect((await callServer(server.url, 'POST', '/v1/agents', server.key, { yaml })).status).toBe(201)
    await server.stop()
    return folder
  }

  test("must be restored if its file is missing, and the error names the file's path", async () => {
    const folder = await makeInstallation()
    const [secret, aside] = [join(folder, 'data/secret'), join(folder, 'aside')]
    await rename(secret, aside)
    const text = await errorLineOf({ folder })
    expect(text).toContain(`${secret} is missing`)
    expect(text).toContain('PARLEY_SECRET')
    expect(await readdir(join(folder, 'data'))).not.toContain('secret')
    await rename(aside, secret)
    expect((await (await startServer({ folder })).stop()).code).toBe(0)
  })

  test('in PARLEY_SECRET is rejected if the agent keys are encrypted with a different secret', async () => {
    const folder = await makeInstallation()
    const text = await errorLineOf({ folder, env: { PARLEY_SECRET: 'o'.repeat(48) } })
    expect(text).toContain('encrypted with a different secret')
    expect(text).not.toContain('ooo')
  })

  test('in the file is rejected if the agent keys are encrypted with a different secret', async () => {
    const folder = await makeInstallation()
    await writeFile(join(folder, 'data/secret'), 'x'.repeat(48))
    expect(await errorLineOf({ folder })).toContain('encrypted with a different secret')
  })

  test('is required at the next start if it came from PARLEY_SECRET', async () => {
    const env = { PARLEY_SECRET: 'a master key that is certainly longer than 32 bytes' }
    const folder = await makeInstallation(env)
    expect(await readdir(join(folder, 'data'))).not.toContain('secret')
    expect(await errorLineOf({ folder })).toContain('PARLEY_SECRET')
    expect((await (await startServer({ folder, env })).stop()).code).toBe(0)
  })

  test('can be replaced while there are no agents', async () => {
    const folder = await makeFolder()
    await (await startServer({ folder })).stop()
    await rm(join(folder, 'data/secret'))
    expect((await (await startServer({ folder })).stop()).code).toBe(0)
  })
})

test('a starting server warns if other OS users can access its data', async () => {
  const folder = await makeFolder()
  await (await startServer({ folder })).stop()
  await chmod(join(folder, 'data/secret'), 0o644)
  await chmod(join(folder, 'data'), 0o777)
  const server = await startServer({ folder })
  await server.prints(/other users of this machine can write to .*chmod 700/, 'stderr')
  await server.prints(
    /other users of this machine can read or change .*secret \(mode 644\).*chmod 600/,
    'stderr',
  )
})

test('a server still responds and stops when its standard error is on a full disk', async () => {
  const wrapper = ['sh', '-c', 'exec "$0" "$@" 2>/dev/full']
  const server = await startServer({ folder: await makeFolder(), env: { LOG_LEVEL: 'debug' }, wrapper })
  for (let count = 0; count < 3; count++)
    expect((await callServer(server.url, 'GET', '/v1/agents', 'wrong')).status).toBe(401)
  expect((await callServer(server.url, 'GET', '/healthz')).status).toBe(200)
  expect((await server.stop()).code).toBe(0)
})
