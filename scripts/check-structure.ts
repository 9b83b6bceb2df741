/**
 * Fails if `src/` breaks a rule in docs/architecture.md: layer order, import cycles, private files, sizes,
 * where packages and globals may be used, the optional package, and table ownership. `npm run verify` runs
 * it; pass another source folder as an argument to check that instead.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tableOwners } from '../src/db/tables.ts'
import { type Import, listImports, listSourceFiles, readSource } from './source-imports.ts'

/** The layers from the bottom up. A module may import its own files and those of modules before it. */
const layers = [
  'lib',
  'prices',
  'config',
  'telemetry',
  'http',
  'design',
  'db',
  'replicas',
  'storage',
  'operations',
  'identity',
  'conversion',
  'backup',
  'providers',
  'budgets',
  'usage',
  'models',
  'tools',
  'agents',
  'webhooks',
  'conversations',
  'chat',
  'embeddings',
  'responses',
  'visitors',
  'files',
  'artifacts',
  'console',
  'web',
  'server',
  'cli',
]

/** Maximum number of files in `src` itself, files in a folder, and lines in a file. */
const limits = { topFiles: 5, folderFiles: 16, fileLines: 400 }

/** Folders without a limit, because every schema change adds a file. */
const unboundedFolders = ['db/migrations']

/** The files and folders that may import each package. */
const packageHomes: Readonly<Record<string, readonly string[]>> = {
  'better-sqlite3': ['db/'],
  pg: ['db/'],
  '@trpc/server': ['operations/'],
  '@trpc/client': [],
  superjson: ['operations/'],
  commander: ['cli/'],
  sharp: ['conversion/'],
  yauzl: ['conversion/'],
  'temporal-polyfill': ['budgets/'],
  '@aws-sdk/client-s3': ['storage/'],
  tar: ['backup/'],
  ioredis: ['replicas/'],
  'prom-client': ['telemetry/'],
  standardwebhooks: ['webhooks/'],
  jose: ['visitors/'],
  '@opentelemetry/': ['telemetry/'],
  '@modelcontextprotocol/client': ['tools/'],
  yaml: ['lib/', 'config/', 'agents/'],
  'node-llama-cpp': ['../packages/in-process/'],
  'zod-openapi': ['operations/', 'server/', 'artifacts/tus-openapi.ts'],
}

/** The only file that may read each global, so that tests can replace it. */
const globalHomes: readonly { name: string; pattern: RegExp; home: string }[] = [
  { name: 'the environment', pattern: /\bprocess\.(env\b|loadEnvFile)/, home: 'config/parse.ts' },
  {
    name: 'the clock',
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/,
    home: 'lib/clock.ts',
  },
  { name: 'Math.random', pattern: /\bMath\.random\(/, home: '' },
]

/** Files that parse untrusted uploads; only the confined worker process may load them. */
const confinedFiles = ['conversion/pictures.ts', 'conversion/captions.ts', 'conversion/archive.ts']
const confinedUsers = ['conversion/worker.ts', 'conversion/worker-run.ts']

/** The optional package's folder, and the file that imports it on demand. */
const optionalPackage = { folder: '../packages/in-process/', home: 'providers/create.ts' }

/** Files that may read any module's tables, because they copy or examine a whole installation. */
const tableReaders = ['backup/store.ts', 'cli/doctor/', 'db/']

const source = resolve(process.argv[2] ?? fileURLToPath(new URL('../src', import.meta.url)))
const files = listSourceFiles(source)
const imports = listImports(source)
const own = imports.filter(({ isOwn, to }) => isOwn && !to.startsWith(optionalPackage.folder))
const moduleOf = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')
const folderOf = (path: string) => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '')

const violations = [
  ...checkLayers(),
  ...checkPrivateFiles(),
  ...checkCycles(),
  ...checkSizes(),
  ...checkPackages(),
  ...checkGlobals(),
  ...checkConfinement(),
  ...checkOptionalPackage(),
  ...checkTables(),
]
for (const line of violations) process.stderr.write(`${line}\n`)
process.exitCode = violations.length > 0 ? 1 : 0

function checkLayers(): string[] {
  const modules = [...new Set(files.map(moduleOf))].filter((name) => name !== '')
  const unknown = modules.filter((name) => !layers.includes(name))
  const upward = own.filter(({ from, to }) => {
    const [importer, imported] = [layers.indexOf(moduleOf(from)), layers.indexOf(moduleOf(to))]
    return importer >= 0 && imported > importer
  })
  return [
    ...unknown.map((name) => `src/${name}: is not in the list of layers`),
    ...upward.map(({ from, to }) => `src/${from}: imports ${to} from a higher layer`),
  ]
}

function checkPrivateFiles(): string[] {
  const isForeign = ({ from, to }: Import) => moduleOf(to) !== '' && moduleOf(from) !== moduleOf(to)
  const isPrivate = ({ to }: Import) => /\/store\.ts$/.test(to) || to.split('/').length > 2
  // All modules may use the formats in `lib`.
  return own
    .filter((one) => isForeign(one) && isPrivate(one) && !one.to.startsWith('lib/'))
    .map(({ from, to }) => `src/${from}: imports ${to}, which is private to its module`)
}

/**
 * Finds cycles between files and between modules, including cycles of type imports, because files in a cycle
 * cannot be understood, tested or moved separately.
 */
function checkCycles(): string[] {
  const byFile = own.filter(({ from, to }) => from !== to).map(({ from, to }): [string, string] => [from, to])
  const byModule = byFile
    .map(([from, to]): [string, string] => [moduleOf(from), moduleOf(to)])
    .filter(([from, to]) => from !== '' && to !== '' && from !== to)
  return [...findCycles(byFile), ...findCycles(byModule)].map(
    (cycle) => `import cycle: ${cycle.join(' -> ')}`,
  )
}

function findCycles(edges: readonly [string, string][]): string[][] {
  const targets = new Map<string, Set<string>>()
  for (const [from, to] of edges) targets.set(from, (targets.get(from) ?? new Set()).add(to))
  const cycles: string[][] = []
  const finished = new Set<string>()
  function visit(node: string, path: readonly string[]): void {
    if (finished.has(node)) return
    const start = path.indexOf(node)
    if (start >= 0) {
      cycles.push([...path.slice(start), node])
      return
    }
    for (const next of targets.get(node) ?? []) visit(next, [...path, node])
    finished.add(node)
  }
  for (const node of targets.keys()) visit(node, [])
  return cycles
}

function checkSizes(): string[] {
  const counts = new Map<string, number>()
  for (const file of files) counts.set(folderOf(file), (counts.get(folderOf(file)) ?? 0) + 1)
  const limitOf = (folder: string) => (folder === '' ? limits.topFiles : limits.folderFiles)
  const folders = [...counts].filter(
    ([folder, count]) => !unboundedFolders.includes(folder) && count > limitOf(folder),
  )
  const long = files
    .map((file) => ({ file, lines: readSource(source, file).split('\n').length - 1 }))
    .filter(({ lines }) => lines > limits.fileLines)
  return [
    ...folders.map(([folder, count]) => `src/${folder}: has ${count} files, at most ${limitOf(folder)}`),
    ...long.map(({ file, lines }) => `src/${file}: has ${lines} lines, at most ${limits.fileLines}`),
  ]
}

function checkPackages(): string[] {
  return Object.entries(packageHomes).flatMap(([name, homes]) =>
    imports
      .filter(
        ({ isOwn, to }) => !isOwn && (to === name || to.startsWith(name.endsWith('/') ? name : `${name}/`)),
      )
      .filter(({ from }) => !homes.some((home) => from.startsWith(home)))
      .map(
        ({ from }) => `src/${from}: imports ${name}, which belongs in ${homes.join(', ') || 'the clients'}`,
      ),
  )
}

function checkGlobals(): string[] {
  const code = (file: string) => readSource(source, file).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
  return globalHomes.flatMap(({ name, pattern, home }) =>
    files
      .filter((file) => file !== home && pattern.test(code(file)))
      .map(
        (file) =>
          `src/${file}: reads ${name}; ${home === '' ? 'no file may read it' : `use src/${home} instead`}`,
      ),
  )
}

function checkConfinement(): string[] {
  return own
    .filter(({ to, isTypeOnly }) => confinedFiles.includes(to) && !isTypeOnly)
    .filter(({ from }) => !confinedUsers.includes(from))
    .map(({ from, to }) => `src/${from}: loads ${to} outside the confined worker`)
}

function checkOptionalPackage(): string[] {
  const { folder, home } = optionalPackage
  return imports
    .filter(({ to }) => to.startsWith(folder))
    .filter(({ from, isDynamic }) => from !== home || !isDynamic)
    .map(({ from, to }) => `src/${from}: imports ${to}, which only src/${home} may do, with a dynamic import`)
}

/** Finds statements on a table outside the module that owns it. */
function checkTables(): string[] {
  const statements =
    /(?:selectFrom|insertInto|updateTable|deleteFrom|innerJoin|leftJoin)\(\s*\[?((?:'[a-z_ ]+',?\s*)+)/g
  return files
    .filter((file) => !tableReaders.some((reader) => file.startsWith(reader)))
    .flatMap((file) => {
      const used = [...readSource(source, file).matchAll(statements)].flatMap(([, names = '']) =>
        [...names.matchAll(/'([a-z_]+)/g)].map(([, name = '']) => name),
      )
      return [...new Set(used)]
        .filter(isTable)
        .filter((name) => tableOwners[name] !== moduleOf(file))
        .map((name) => `src/${file}: uses the table ${name}, which src/${tableOwners[name]} owns`)
    })
}

function isTable(name: string): name is keyof typeof tableOwners {
  return name in tableOwners
}
