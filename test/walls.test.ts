import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type Import, listImports, listSourceFiles, readSource } from './support/imports.ts'
import { makeFolder } from './support/process.ts'

const rooms = [
  'admin',
  'audit',
  'keys',
  'agents',
  'artifacts',
  'chat',
  'models',
  'embeddings',
  'responses',
  'usage',
  'files',
  'conversion',
  'console',
  'tools',
  'embed',
  'console-page',
  'shared-state',
  'backup',
  'observability',
]
const imports = listImports()
const files = listSourceFiles()
const folderOf = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')
const isIn = (path: string, ...folders: string[]) => folders.includes(folderOf(path))
const packageOf = ({ isOwn, to }: Import) =>
  isOwn ? '' : to.split('/', to.startsWith('@') ? 2 : 1).join('/')
const show = ({ from, to }: Import) => `${from} imports ${to}`

/** What must not be, as a list of the places where it is. */
const offences = (isOffence: (one: Import) => boolean) => imports.filter(isOffence).map(show)

test('the imports of every file are seen, and lead somewhere', () => {
  expect(files.length).toBeGreaterThan(80)
  for (const room of rooms) expect(files.some((file) => folderOf(file) === room)).toBe(true)
  const own = imports.filter(({ isOwn, to }) => isOwn && to.endsWith('.ts'))
  expect(own.length).toBeGreaterThan(300)
  expect(own.filter(({ to }) => !files.includes(to)).map(show)).toEqual([])
  // Every file but those that start a process, and the package's entry, is imported by another.
  const imported = new Set(own.map(({ to }) => to))
  const beginnings = ['conversion/worker.ts', 'index.ts', 'parley.ts']
  expect(files.filter((file) => !imported.has(file))).toEqual(beginnings)
})

describe('a room', () => {
  const outer = ['app.ts', 'service.ts', 'create-deps.ts', 'http-server.ts', 'health.ts', 'main.ts']

  test('knows nothing of the doors', () => {
    const isDoor = (one: Import) =>
      packageOf(one) === 'express' || (one.isOwn && (isIn(one.to, 'rest', 'cli') || outer.includes(one.to)))
    expect(offences((one) => isIn(one.from, ...rooms) && isDoor(one))).toEqual([])
    expect(
      offences(
        (one) => isIn(one.from, ...rooms) && /^node:(http|https|net)$/.test(one.to) && !one.isTypeOnly,
      ),
    ).toEqual([])
  })

  test('leaves the rows of the others alone', () => {
    const isForeignStore = ({ from, to }: Import) =>
      to.endsWith('/store.ts') && folderOf(to) !== folderOf(from)
    expect(offences((one) => isIn(one.from, ...rooms, 'rest', 'rpc', 'db') && isForeignStore(one))).toEqual(
      [],
    )
  })

  test('that runs on another is not run on by it', () => {
    const uses = (room: string) =>
      imports
        .filter(
          ({ from, to, isOwn, isTypeOnly }) =>
            isOwn && !isTypeOnly && folderOf(from) === room && isIn(to, ...rooms),
        )
        .map(({ to }) => folderOf(to))
        .filter((other) => other !== room)
    for (const room of rooms) {
      const reached = new Set<string>()
      const queue = uses(room)
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        if (!reached.has(next)) queue.push(...uses(next))
        reached.add(next)
      }
      expect([room, [...reached]]).not.toEqual([room, expect.arrayContaining([room])])
    }
  })
})

test('no file needs itself to be loaded first', () => {
  const needs = new Map<string, string[]>(files.map((file) => [file, []]))
  for (const { from, to, isOwn, isTypeOnly } of imports) {
    if (isOwn && !isTypeOnly && files.includes(to)) needs.get(from)?.push(to)
  }
  const finished = new Set<string>()
  function visit(file: string, way: readonly string[]): void {
    if (finished.has(file)) return
    expect(way.includes(file) ? [...way, file] : []).toEqual([])
    for (const next of needs.get(file) ?? []) visit(next, [...way, file])
    finished.add(file)
  }
  for (const file of files) visit(file, [])
})

describe('a package stays where it belongs', () => {
  const homes: Readonly<Record<string, (path: string) => boolean>> = {
    'better-sqlite3': (path) => isIn(path, 'db'),
    pg: (path) => isIn(path, 'db'),
    '@trpc/server': (path) => isIn(path, 'rpc'),
    '@trpc/client': () => false,
    superjson: () => false,
    express: (path) => path === 'app.ts' || path === 'rpc/door.ts',
    undici: (path) =>
      path.startsWith('chat/backends/') || path === 'guarded-connector.ts' || path === 'tools/mcp/http.ts',
    '@modelcontextprotocol/client': (path) => path.startsWith('tools/mcp/'),
    yaml: (path) => isIn(path, 'agents'),
    'zod-openapi': (path) => path.startsWith('rest/openapi'),
    commander: (path) => isIn(path, 'cli'),
    sharp: (path) => path === 'conversion/pictures.ts',
    yauzl: (path) => path.startsWith('conversion/archive'),
    '@aws-sdk/client-s3': (path) => path.startsWith('storage/s3/'),
    tar: (path) => path.startsWith('backup/tar-'),
    ioredis: (path) => path.startsWith('shared-state/redis/'),
    'prom-client': (path) => path === 'observability/scrape.ts',
    ...Object.fromEntries(
      ['api', 'core', 'resources', 'sdk-trace', 'exporter-trace-otlp-http'].map((name) => [
        `@opentelemetry/${name}`,
        (path: string) => path.startsWith('observability/otel/'),
      ]),
    ),
  }
  test.each(Object.entries(homes))('%s', (name, isHome) => {
    expect(offences((one) => packageOf(one) === name && !isHome(one.from))).toEqual([])
  })
})

test('what strangers upload is read in a process of its own', () => {
  const readers = ['pictures', 'captions', 'project'].map((name) => `conversion/${name}.ts`)
  const users = imports.filter(({ to, isTypeOnly }) => readers.includes(to) && !isTypeOnly)
  expect(users.length).toBeGreaterThanOrEqual(readers.length)
  expect(users.filter(({ from }) => from !== 'conversion/worker.ts').map(show)).toEqual([])
})

describe('what is global is taken in one place only', () => {
  const places: [what: string, pattern: RegExp, files: readonly string[]][] = [
    ['the environment', /\bprocess\.(env\b|loadEnvFile)/, ['config.ts']],
    ['the clock', /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/, ['system-clock.ts']],
    ['chance', /\bMath\.random\(/, []],
  ]
  test.each(places)('%s', (_what, pattern, homes) => {
    const code = (file: string) => readSource(file).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
    expect(files.filter((file) => pattern.test(code(file)))).toEqual(homes)
  })
})

describe('the linter sees it too', () => {
  const biome = fileURLToPath(new URL('../node_modules/@biomejs/biome/bin/biome', import.meta.url))
  const settings = JSON.parse(readFileSync(new URL('../biome.json', import.meta.url), 'utf8'))

  const refused: [path: string, statement: string, words: string][] = [
    ['src/chat/one.ts', "import '../rest/door.ts'", 'A room knows nothing of the doors.'],
    ['src/chat/backends/one.ts', "import '../../rest/sse.ts'", 'A room knows nothing of the doors.'],
    ['src/keys/one.ts', "import 'express'", 'A room knows nothing of the doors.'],
    ['src/models/one.ts', "export type { AgentRow } from '../agents/store.ts'", 'rows are its own'],
    ['src/chat/backends/two.ts', "import '../../agents/store.ts'", 'rows are its own'],
    ['src/agents/one.ts', "import 'better-sqlite3'", 'belong to src/db alone'],
    ['src/service.ts', "import 'pg'", 'belong to src/db alone'],
    ['src/rpc/one.ts', "import 'better-sqlite3'", 'belong to src/db alone'],
    ['src/keys/two.ts', "import '@trpc/server'", 'tRPC belongs to src/rpc'],
    ['src/app.ts', "import '@trpc/server/adapters/express'", 'tRPC belongs to src/rpc'],
    ['src/db/one.ts', "import '@trpc/server'", 'tRPC belongs to src/rpc'],
    ['src/main.ts', 'export const home = process.env.HOME', 'noProcessEnv'],
  ]
  const accepted: [path: string, statement: string][] = [
    ['src/agents/two.ts', "import './store.ts'"],
    ['src/chat/backends/three.ts', "import '../store.ts'"],
    ['src/db/two.ts', "import 'better-sqlite3'"],
    ['src/rpc/two.ts', "import '@trpc/server/adapters/express'"],
    ['src/config.ts', 'export const home = process.env.HOME'],
  ]

  test('and refuses the same', async () => {
    const folder = await makeFolder()
    await writeFile(join(folder, 'biome.json'), JSON.stringify({ ...settings, vcs: { enabled: false } }))
    for (const [path, statement] of [...refused, ...accepted]) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), `${statement}\n`)
    }
    const lines = await new Promise<string[]>((resolve) => {
      const words = [biome, 'lint', '--reporter=github', '--max-diagnostics=none', '.']
      execFile(process.execPath, words, { cwd: folder }, (_error, stdout) => resolve(stdout.split('\n')))
    })
    for (const [path, , words] of refused) {
      expect(lines.filter((line) => line.includes(`${path},line=`))).toEqual([expect.stringContaining(words)])
    }
    for (const [path] of accepted) expect(lines.filter((line) => line.includes(`${path},line=`))).toEqual([])
  })
})
