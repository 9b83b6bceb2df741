/** Tests how a server with an in-process model starts and stops, and how it reports unusable models. */
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { webBuilds } from '../../scripts/web-sources.mjs'
import { greedy, localEnvironment } from '../support/local-model.ts'
import { callServer, makeFolder, repository, runParley, startServer } from '../support/process.ts'
import { makeTinyModel } from '../support/tiny-model.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const tiny = makeTinyModel()

/** Creates a working directory with a model file, and the environment to use it. */
async function makeModelFolder(
  bytes: Uint8Array = tiny,
): Promise<{ folder: string; env: Record<string, string> }> {
  const folder = await makeFolder()
  await writeFile(join(folder, 'tiny.gguf'), bytes)
  return { folder, env: { ...localEnvironment('tiny.gguf'), PORT: '0' } }
}

/** Creates a copy of this checkout without one package. */
async function makeCheckoutWithout(name: string): Promise<string> {
  const folder = await makeFolder()
  for (const source of ['src', 'packages/in-process/src']) {
    await cp(join(repository, source), join(folder, source), { recursive: true })
  }
  for (const { target } of Object.values(webBuilds)) {
    await cp(join(repository, target), join(folder, target), { recursive: true })
  }
  await cp(join(repository, 'package.json'), join(folder, 'package.json'))
  const packages = (await readdir(join(repository, 'node_modules'))).filter(
    (entry) => !entry.startsWith('.') && entry !== name,
  )
  await mkdir(join(folder, 'node_modules'))
  for (const entry of packages) {
    await symlink(join(repository, 'node_modules', entry), join(folder, 'node_modules', entry))
  }
  return folder
}

interface Check {
  readonly check: string
  readonly state: string
  readonly message: string
}

/** Runs `parley doctor`; returns its finding about the model provider. */
async function runDoctor(folder: string, env: Record<string, string>): Promise<string> {
  const { stdout, stderr } = await runParley(['doctor', '--json'], { folder, env })
  expect(stderr).toBe('')
  const { checks }: { checks: Check[] } = JSON.parse(stdout)
  const { state, message } = checks.find(({ check }) => check === 'backend') as Check
  return `${state}: ${message}`
}

test('a server with an in-process model responds, prints no llama.cpp messages and can stop mid-response', async () => {
  const { folder, env } = await makeModelFolder(makeTinyModel({ brevity: -100 }))
  const server = await startServer({
    folder,
    env: { ...env, LOG_LEVEL: 'error', PARLEY_SHUTDOWN_SECONDS: '0.3' },
  })
  const short = await callServer(
    server.url,
    'POST',
    '/v1/chat/completions',
    server.key,
    greedy('Hi', { max_tokens: 3 }),
  )
  expect(short.body.usage.completion_tokens).toBe(3)
  const health = await callServer(server.url, 'GET', '/readyz')
  expect(health.body).toMatchObject({ status: 'ready' })
  const endless = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(greedy('Hi', { stream: true })),
  })
  const reader = endless.body?.getReader()
  expect((await reader?.read())?.done).toBe(false)
  const { code, signal, stderr, stdout } = await server.stop()
  expect({ code, signal }).toEqual({ code: 0, signal: null })
  expect(stderr).toMatch(/^SIGTERM received: finishing open requests.*\n$/)
  expect(stdout).not.toMatch(/llama|gguf/i)
})

describe('serve and doctor report in one sentence', () => {
  /** Runs both commands and compares the end of their errors with a pattern. */
  async function expectComplaint(
    folder: string,
    env: Record<string, string>,
    expected: RegExp,
  ): Promise<void> {
    const { code, stdout, stderr } = await runParley(['serve'], { folder, env })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    const path = join(folder, String(env.PARLEY_LOCAL_MODEL))
    const opening = `The model file ${path} (provider local) `
    const found = await runDoctor(folder, env)
    for (const [sentence, start] of [
      [stderr, 'parley: '],
      [`${found}\n`, 'fail: '],
    ] as const) {
      expect(sentence.slice(0, start.length + opening.length)).toBe(start + opening)
      expect(sentence.slice(start.length + opening.length)).toMatch(expected)
    }
  }

  test('a missing model file', async () => {
    const { folder, env } = await makeModelFolder()
    await expectComplaint(folder, { ...env, PARLEY_LOCAL_MODEL: 'other.gguf' }, /^does not exist\.\n$/)
  })

  test.each<[what: string, bytes: Uint8Array, complaint: RegExp]>([
    ['a text file', Buffer.from('not a model, only text'), /^is not in the GGUF format\.\n$/],
    ['an empty file', Buffer.alloc(0), /^is not in the GGUF format\.\n$/],
    ['half of a file header', tiny.subarray(0, 5000), /^cannot be loaded: \S.*\.\n$/],
    [
      'a truncated model file',
      tiny.subarray(0, tiny.length - 50_000),
      /^cannot be loaded: .*(corrupted|incomplete|bounds).*\.\n$/,
    ],
    [
      'a model with an unknown architecture',
      Buffer.from(Buffer.from(tiny).toString('latin1').replace('llama', 'zzzzz'), 'latin1'),
      /^cannot be loaded: .*zzzzz.*\.\n$/,
    ],
  ])('%s', async (_what, bytes, expected) => {
    const { folder, env } = await makeModelFolder(bytes)
    await expectComplaint(folder, env, expected)
  })
})

test("a server does not start if the model's chat template is invalid", async () => {
  const { folder, env } = await makeModelFolder(
    makeTinyModel({ chatTemplate: '{% for m in messages %}{{ m.content }' }),
  )
  const { code, stderr } = await runParley(['serve'], { folder, env })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^parley: The model file .* cannot be loaded: .*\n$/)
})

test('doctor reports a model that can be loaded', async () => {
  const { folder, env } = await makeModelFolder()
  expect(await runDoctor(folder, env)).toBe(`ok: ${join(folder, 'tiny.gguf')} can be loaded`)
})

test('a server with an in-process model reports how to install a missing package', async () => {
  const { folder, env } = await makeModelFolder()
  const main = join(await makeCheckoutWithout('node-llama-cpp'), 'src/main.ts')
  const { code, stderr } = await runParley(['serve'], { folder, env, main })
  const manifest = JSON.parse(await readFile(join(repository, 'packages/in-process/package.json'), 'utf8'))
  const version = manifest.dependencies['node-llama-cpp']
  expect(code).toBe(1)
  expect(stderr).toBe(
    'parley: The in-process model (provider local) needs a package that is not installed. ' +
      `Run \`npm install --no-save --ignore-scripts node-llama-cpp@${version}\`, ` +
      'or `npm run local-models` in a checkout of Parley.\n',
  )
  const server = await startServer({ folder: dirname(main), main })
  expect((await server.stop()).code).toBe(0)
})
