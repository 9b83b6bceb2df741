/** Tests the setup script, a test run's summary line, and the checks of paths and wording in the docs. */
import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { findCommand } from '../../scripts/programs.mjs'
import { webBuilds } from '../../scripts/web-sources.mjs'

// Running npm is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const repository = fileURLToPath(new URL('../..', import.meta.url))
const folders: string[] = []

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

/** Creates a temporary folder with these files, and removes it after the test. */
async function makeFolder(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-setup-test-'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs Node.js without npm's environment variables, which would direct npm to this repository. */
async function runNode(folder: string, args: readonly string[], path = process.env.PATH): Promise<Ended> {
  const env = { PATH: path, HOME: folder, TMPDIR: folder }
  // Merges both outputs into one pipe to preserve the order of the lines.
  const command = ['-c', 'exec "$@" 2>&1', 'sh', process.execPath, ...args]
  const child = spawn('sh', command, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, output: Buffer.concat(chunks).toString() }
}

describe('the setup', () => {
  /** Creates a checkout with packages from local folders; the server's dependency has an install script. */
  async function makeCheckout(): Promise<string> {
    const models = { 'node-llama-cpp': 'file:engine' }
    const folder = await makeFolder({
      'package.json': JSON.stringify(rootManifest),
      'client/package.json': JSON.stringify(clientManifest),
      'test/package.json': JSON.stringify(testManifest),
      'package-lock.json': renderLockfile('1.0.0'),
      'part/package.json': renderPart('1.0.0'),
      'packages/in-process/package.json': JSON.stringify({ name: 'models', dependencies: models }),
      'packages/in-process/package-lock.json': JSON.stringify({
        ...{ name: 'models', lockfileVersion: 3 },
        packages: {
          '': { name: 'models', dependencies: models },
          'node_modules/node-llama-cpp': { resolved: 'engine', link: true },
          engine: { name: 'node-llama-cpp', version: '1.0.0' },
        },
      }),
      'packages/in-process/engine/package.json': renderPackage('node-llama-cpp'),
      ...Object.fromEntries(
        ['button', 'checker', 'suite'].map((name) => [`${name}/package.json`, renderPackage(name)]),
      ),
    })
    for (const name of ['.npmrc', 'scripts']) {
      await cp(join(repository, name), join(folder, name), { recursive: true })
    }
    for (const [name, { script }] of Object.entries(webBuilds))
      await writeFile(join(folder, script), renderBuild(name))
    return folder
  }

  /** Returns a build script that writes only a manifest with the digest of its sources. */
  function renderBuild(name: string): string {
    return `import { mkdirSync, writeFileSync } from 'node:fs'
      import { digestSources, webBuilds } from './web-sources.mjs'
      const build = webBuilds.${name}
      mkdirSync(build.target, { recursive: true })
      writeFileSync(build.target + '/manifest.json', JSON.stringify({ sources: digestSources('.', build) }))`
  }

  const rootManifest = {
    ...{ name: 'checkout', version: '1.0.0', workspaces: ['client', 'test'] },
    dependencies: { part: 'file:part' },
    devDependencies: { checker: 'file:checker' },
  }
  const clientManifest = { name: 'pages', version: '1.0.0', dependencies: { button: 'file:../button' } }
  const testManifest = { name: 'suites', version: '1.0.0', devDependencies: { suite: 'file:../suite' } }

  function renderPackage(name: string): string {
    return JSON.stringify({ name, version: '1.0.0' })
  }

  function renderPart(version: string): string {
    return JSON.stringify({ name: 'part', version, scripts: { postinstall: 'touch ran' } })
  }

  function renderLockfile(version: string): string {
    const packages = {
      '': rootManifest,
      client: clientManifest,
      test: testManifest,
      'node_modules/pages': { resolved: 'client', link: true },
      'node_modules/suites': { resolved: 'test', link: true },
      'node_modules/part': { resolved: 'part', link: true },
      'node_modules/button': { resolved: 'button', link: true },
      'node_modules/checker': { resolved: 'checker', link: true },
      'node_modules/suite': { resolved: 'suite', link: true },
      part: { version, hasInstallScript: true },
      button: { version: '1.0.0' },
      checker: { version: '1.0.0', dev: true },
      suite: { version: '1.0.0', dev: true },
    }
    return JSON.stringify({ name: 'checkout', version: '1.0.0', lockfileVersion: 3, packages })
  }

  /** Lists the packages installed in the checkout. */
  async function listPackages(folder: string): Promise<string[]> {
    const known = ['button', 'checker', 'node-llama-cpp', 'part', 'suite']
    return (await readdir(join(folder, 'node_modules'))).filter((name) => known.includes(name)).sort()
  }

  const setUp = (folder: string, ...options: readonly string[]) =>
    runNode(folder, ['scripts/setup.mjs', ...options])

  test('installs packages and a Node binary in a new checkout and does not run install scripts', async () => {
    const folder = await makeCheckout()
    expect(await setUp(folder)).toMatchObject({ code: 0, output: expect.stringContaining('npm ci') })
    expect(await readFile(join(folder, 'node_modules/part/package.json'), 'utf8')).toBe(renderPart('1.0.0'))
    await expect(stat(join(folder, 'part/ran'))).rejects.toThrow('ENOENT')
    expect((await stat(join(folder, 'node_modules/.bin/node'))).isFile()).toBe(true)
  })

  test('does nothing and prints nothing when it runs again', async () => {
    const folder = await makeCheckout()
    await setUp(folder)
    await writeFile(join(folder, 'node_modules/kept'), '')
    expect(await setUp(folder)).toEqual({ code: 0, output: '' })
    expect((await stat(join(folder, 'node_modules/kept'))).isFile()).toBe(true)
  })

  test('installs only the packages that a command needs', async () => {
    const folder = await makeCheckout()
    await setUp(folder)
    expect(await listPackages(folder)).toEqual(['button', 'part'])
    expect((await setUp(folder, '--tests')).output).toContain('npm ci')
    expect(await listPackages(folder)).toEqual(['button', 'checker', 'part'])
    expect((await setUp(folder, '--all-packages')).output).toContain('npm ci')
    expect(await listPackages(folder)).toEqual(['button', 'checker', 'node-llama-cpp', 'part', 'suite'])
    for (const options of [['--all-packages'], ['--tests'], ['--in-process'], []])
      expect(await setUp(folder, ...options)).toEqual({ code: 0, output: '' })
  })

  test('installs type declarations and source maps only when a command needs them', async () => {
    const folder = await makeCheckout()
    const files = ['typed/index.js', 'typed/index.d.ts', 'typed/index.js.map']
    await mkdir(join(folder, 'typed'))
    for (const name of files) await writeFile(join(folder, name), '')
    await writeFile(join(folder, 'typed/package.json'), renderPackage('typed'))
    await promisify(execFile)('tar', ['-czf', 'typed.tgz', 'typed'], { cwd: folder })
    const dependencies = { part: 'file:part', typed: 'file:typed.tgz' }
    const lockfile = JSON.parse(renderLockfile('1.0.0'))
    lockfile.packages[''].dependencies = dependencies
    lockfile.packages['node_modules/typed'] = { version: '1.0.0', resolved: 'file:typed.tgz' }
    await writeFile(join(folder, 'package.json'), JSON.stringify({ ...rootManifest, dependencies }))
    await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lockfile))
    const list = async () => (await readdir(join(folder, 'node_modules/typed'))).sort()
    await setUp(folder)
    expect(await list()).toEqual(['index.js', 'package.json'])
    await setUp(folder, '--tests')
    expect(await list()).toEqual(['index.d.ts', 'index.js', 'index.js.map', 'package.json'])
  })

  test('reinstalls the package for in-process models after `node_modules` is deleted', async () => {
    const folder = await makeCheckout()
    await setUp(folder, '--in-process')
    expect(await listPackages(folder)).toEqual(['button', 'node-llama-cpp', 'part'])
    await rm(join(folder, 'node_modules'), { recursive: true })
    await setUp(folder)
    const engine = join(folder, 'node_modules/node-llama-cpp/package.json')
    expect(await readFile(engine, 'utf8')).toBe(renderPackage('node-llama-cpp'))
  })

  test('reinstalls packages when the lock file changes', async () => {
    const folder = await makeCheckout()
    await setUp(folder)
    await writeFile(join(folder, 'package-lock.json'), renderLockfile('2.0.0'))
    await writeFile(join(folder, 'part/package.json'), renderPart('2.0.0'))
    expect((await setUp(folder)).output).toContain('npm ci')
    expect(await setUp(folder)).toEqual({ code: 0, output: '' })
  })

  test.each(Object.entries(webBuilds))(
    'rebuilds the %s only when the sources change',
    async (_name, { source }) => {
      const folder = await makeCheckout()
      const part = join(folder, source, 'part.ts')
      await mkdir(join(folder, source), { recursive: true })
      await writeFile(part, 'one')
      expect((await setUp(folder)).output).toContain(`building ${source}/`)
      expect(await setUp(folder)).toEqual({ code: 0, output: '' })
      await writeFile(part, 'two')
      expect((await setUp(folder)).output).toContain(`building ${source}/`)
      expect(await setUp(folder)).toEqual({ code: 0, output: '' })
    },
  )

  test('installs packages once when two instances run concurrently', async () => {
    const folder = await makeCheckout()
    const both = await Promise.all([setUp(folder), setUp(folder)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(both.filter(({ output }) => output.includes('npm ci'))).toHaveLength(1)
  })

  test('prints a command that installs a missing program', async () => {
    const folder = await makeCheckout()
    await setUp(folder, '--all-packages')
    const path = await makePath(folder, ['npm', 'node', 'sh'])
    expect(await runNode(folder, ['scripts/setup.mjs', '--all-tests'], path)).toMatchObject({
      code: 0,
      output: expect.stringContaining('apt-get install chromium'),
    })
  })

  test('fails with a one-sentence error when npm fails', async () => {
    const folder = await makeCheckout()
    await writeFile(
      join(folder, 'package-lock.json'),
      '{ "lockfileVersion": 3, "packages": { "node_modules/other": {} } }',
    )
    expect(await setUp(folder)).toMatchObject({ code: 1, output: expect.stringContaining('npm ci failed') })
  })

  /** Creates a folder with links to the commands; returns its path, for use as PATH. */
  async function makePath(folder: string, commands: readonly string[]): Promise<string> {
    const path = join(folder, 'path')
    await mkdir(path)
    for (const command of commands) await symlink(findCommand([command]) ?? '', join(path, command))
    return path
  }
})

describe('the summary of a test run', () => {
  /** Runs the test files in the same way as `npm test`. */
  async function runTests(
    files: Record<string, string>,
  ): Promise<{ code: number | null; failures: string[]; lastLine: string | undefined }> {
    const config = `import { CountReporter } from ${JSON.stringify(join(repository, 'test/support/reporter.ts'))}
      export default { test: {
        globals: true,
        setupFiles: [${JSON.stringify(join(repository, 'test/support/setup.ts'))}],
        reporters: ['default', new CountReporter()],
      } }`
    const folder = await makeFolder({
      ...files,
      'vitest.config.mjs': config,
      'package.json': '{"type":"module"}',
    })
    await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
    const { code, output } = await runNode(folder, ['node_modules/vitest/vitest.mjs', 'run'])
    const lines = output.trimEnd().split('\n')
    return { code, failures: lines.filter((line) => line.startsWith('failed: ')), lastLine: lines.at(-1) }
  }

  test('counts tests that passed', async () => {
    const files = { 'a.test.js': `test('one', () => {}); test('two', () => {})` }
    expect(await runTests(files)).toEqual({ code: 0, failures: [], lastLine: '2 passed, 0 failed' })
  })

  test('counts skipped tests and failed tests, including tests that write to the console', async () => {
    const files = {
      'a.test.js': `test('good', () => {}); test('bad', () => { throw new Error('bad') }); test.skip('later', () => {})`,
      'b.test.js': `test('loud', () => { console.warn('careful') })`,
    }
    expect(await runTests(files)).toEqual({
      code: 1,
      failures: ['failed: a.test.js > bad: bad', expect.stringContaining('failed: b.test.js > loud: ')],
      lastLine: '1 passed, 2 failed, 1 skipped',
    })
  })

  test('counts a test file that cannot be loaded as a failure', async () => {
    const files = { 'a.test.js': `import './absent.js'`, 'b.test.js': `test('good', () => {})` }
    expect(await runTests(files)).toEqual({
      code: 1,
      failures: [expect.stringContaining('failed: a.test.js > the file: ')],
      lastLine: '1 passed, 1 failed',
    })
  })

  test('counts a failed hook and an error outside a test as failures', async () => {
    const files = {
      'a.test.js': `describe('x', () => { beforeAll(() => { throw new Error('hook') }); test('unreached', () => {}) })`,
      'b.test.js': `test('early', () => new Promise((resolve) => { setTimeout(() => { resolve(); throw new Error('late') }) }))`,
    }
    expect(await runTests(files)).toEqual({
      code: 1,
      failures: ['failed: a.test.js > x: hook', 'failed: outside of tests: late'],
      lastLine: '1 passed, 2 failed, 1 skipped',
    })
  })

  test('reports a failure when there are no tests', async () => {
    expect(await runTests({})).toEqual({ code: 1, failures: [], lastLine: '0 passed, 1 failed' })
  })
})

describe('the check of paths in the docs', () => {
  const check = async (readme: string, more: Readonly<Record<string, string>> = {}) => {
    const folder = await makeFolder({
      ...more,
      'README.md': readme,
      'src/here.ts': '',
      'docs/guide.md': '# A part\n[home](../README.md)',
    })
    return runNode(folder, [join(repository, 'scripts/check-doc-paths.ts')])
  }

  test('accepts existing paths, glob patterns, placeholders, URLs and code blocks', async () => {
    const readme =
      'See `src/here.ts`, `src/*.ts`, `src/<module>/store.ts`, `/v1/agents`, [a](docs/guide.md#a-part), [b](https://a.test/b).'
    expect(await check(`${readme}\n\`\`\`\n\`src/gone.ts\`\n\`\`\`\n`)).toEqual({ code: 0, output: '' })
  })

  test('fails for paths, links and headings that do not exist', async () => {
    const { code, output } = await check(
      'See `src/gone.ts`, [this](docs/gone.md) and [that](docs/guide.md#gone).',
    )
    expect(code).toBe(1)
    expect(output).toContain('README.md names src/gone.ts')
    expect(output).toContain('README.md names docs/gone.md')
    expect(output).toContain('README.md names docs/guide.md#gone')
  })

  test('fails for a picture that no page shows', async () => {
    const pictures = { 'docs/pictures/shown.png': '', 'docs/pictures/unused.png': '' }
    const { code, output } = await check('![A page](docs/pictures/shown.png)', pictures)
    expect(code).toBe(1)
    expect(output).toBe('docs/pictures/unused.png appears on no page; show or delete it\n')
  })
})

describe('the prose check', () => {
  const check = async (source: string) => {
    const folder = await makeFolder({ 'README.md': '# Parley', 'src/file.ts': source })
    return runNode(folder, [join(repository, 'scripts/check-prose.ts')])
  }

  test('accepts plain comments and references to existing files', async () => {
    const source = "/** Reads the file (docs/a.md). */\nexport const message = 'The file is too large.'\n"
    const folder = await makeFolder({ 'README.md': '# Parley', 'docs/a.md': 'Hello.', 'src/file.ts': source })
    expect(await runNode(folder, [join(repository, 'scripts/check-prose.ts')])).toEqual({
      code: 0,
      output: '',
    })
  })

  test.each([
    [
      'a word to avoid in a comment',
      `/** Reads the file. */\n// It ${'lies'} in a folder.\n`,
      'src/file.ts:2',
    ],
    [
      'a word to avoid in a message',
      `/** Reads. */\nthrow new Error('The file ${'is'} away now.')\n`,
      'unavailable',
    ],
    ['a clause as the subject', '/** Reads. */\n// What was read is kept.\n', '"What"'],
    ['a file header without a verb', '/** The file of the list. */\n', 'no verb'],
    ['a reference to a document outside the repository', '/** Reads. */\n// Decision: 7\n', '"Decision: 7"'],
    ['an ADR that does not exist', '/** Reads, see ADR 9999. */\n', 'ADR 9999, which does not exist'],
    ['a page that does not exist', '/** Reads, see docs/gone.md. */\n', 'docs/gone.md, which does not exist'],
  ])('fails for %s', async (_name, source, fault) => {
    const { code, output } = await check(source)
    expect(code).toBe(1)
    expect(output).toContain(fault)
  })
})
