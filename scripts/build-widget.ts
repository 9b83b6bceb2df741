/** Builds the chat widget from `widget/` into `dist/widget/`: the loader, the frame, the demo's page and the React component. */
import { createHash } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type InlineConfig, type Rolldown } from 'vite'
import { builtFolder, digestSources } from './widget-sources.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** A part of the widget as the server serves it. */
interface BuiltPart {
  /** Its name with a digest of its content in it: what is under that name never changes. */
  readonly file: string
  /** For the attribute `integrity` of its tag. */
  readonly integrity: string
  readonly sizeBytes: number
  readonly gzipBytes: number
}

/** What one build writes: the script, and the style if the sources import one. */
interface BuiltCode {
  readonly script: Uint8Array
  readonly style: Uint8Array | undefined
}

const common: InlineConfig = {
  root: join(root, 'widget'),
  configFile: false,
  envDir: false,
  publicDir: false,
  logLevel: 'warn',
}

/** The frame is written for React and runs on Preact, which is a tenth of it. Decision: 11. */
const preactForReact = [
  { find: /^react\/jsx-(dev-)?runtime$/, replacement: 'preact/jsx-runtime' },
  { find: /^react-dom\/client$/, replacement: 'preact/compat/client' },
  { find: /^react(-dom)?$/, replacement: 'preact/compat' },
]

const frameAliases = [
  ...preactForReact,
  // Its form for browsers writes HTML into an element: Trusted Types forbid that, and a worker has no document.
  {
    find: 'decode-named-character-reference',
    replacement: join(root, 'widget/frame/markdown/decode-entity.ts'),
  },
]

async function bundle(
  entry: string,
  config: InlineConfig,
  output: Rolldown.OutputOptions,
): Promise<BuiltCode> {
  const built = (await build({
    ...common,
    ...config,
    build: {
      write: false,
      target: 'es2022',
      // Of 2024: their `light-dark()` is not to be spelled out.
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      cssCodeSplit: false,
      modulePreload: false,
      assetsInlineLimit: 0,
      ...config.build,
      rolldownOptions: {
        ...config.build?.rolldownOptions,
        input: join(root, 'widget', entry),
        output: { codeSplitting: false, ...output },
      },
    },
  })) as Rolldown.RolldownOutput
  const script = built.output.find((part) => part.type === 'chunk')
  const style = built.output.find((part) => part.type === 'asset' && part.fileName.endsWith('.css'))
  if (script?.type !== 'chunk') throw new Error(`${entry} made no script`)
  return {
    script: Buffer.from(script.code),
    style: style?.type === 'asset' ? Buffer.from(style.source) : undefined,
  }
}

/** The React component keeps its imports of React: the page has its own. It is for browsers, and says so to what renders on servers. */
async function bundleReact(): Promise<Uint8Array> {
  const rolldownOptions = {
    external: /^react(-dom)?(\/|$)/,
    preserveEntrySignatures: 'strict',
  } as const
  const output = { format: 'es', banner: "'use client'\n" } as const
  return (await bundle('react/index.ts', { build: { minify: false, rolldownOptions } }, output)).script
}

async function write(folder: string, name: string, extension: string, code: Uint8Array): Promise<BuiltPart> {
  const digest = createHash('sha384').update(code).digest()
  const file = `${name}-${digest.toString('hex').slice(0, 12)}.${extension}`
  await writeFile(join(folder, file), code)
  return {
    file,
    integrity: `sha384-${digest.toString('base64')}`,
    sizeBytes: code.length,
    gzipBytes: gzipSync(code, { level: 9 }).length,
  }
}

function styleOf({ style }: BuiltCode): Uint8Array {
  return style ?? Buffer.alloc(0)
}

async function writeAll(folder: string): Promise<void> {
  // Taken first: a source that changes meanwhile is built again by whoever looks next.
  const sources = digestSources(root)
  const loader = await bundle('loader/main.ts', {}, { format: 'iife' })
  const frame = await bundle('frame/main.tsx', { resolve: { alias: frameAliases } }, { format: 'es' })
  const demo = await bundle('demo/main.ts', {}, { format: 'es' })
  await writeFile(join(folder, 'react.js'), await bundleReact())
  const manifest = {
    sources,
    loader: await write(folder, 'parley', 'js', loader.script),
    frameScript: await write(folder, 'frame', 'js', frame.script),
    frameStyle: await write(folder, 'frame', 'css', styleOf(frame)),
    demoScript: await write(folder, 'demo', 'js', demo.script),
    demoStyle: await write(folder, 'demo', 'css', styleOf(demo)),
  }
  await writeFile(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Builds into a folder of its own first: a server that starts meanwhile finds the old widget whole, or none. */
const target = join(root, builtFolder)
const fresh = `${target}.${process.pid}`
await mkdir(fresh, { recursive: true })
try {
  await writeAll(fresh)
  await rm(target, { recursive: true, force: true })
  await rename(fresh, target)
} finally {
  await rm(fresh, { recursive: true, force: true })
}
