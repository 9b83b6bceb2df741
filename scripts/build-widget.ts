/** Builds the chat widget from `widget/` to `dist/widget/`: loader, frame, demo page and React component. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build, type InlineConfig, type Plugin, type Rolldown } from 'vite'
import { replaceBuild, root } from './web-folder.ts'
import { webBuilds } from './web-sources.mjs'

interface BuiltPart {
  /** A file name that contains a digest of the content, so the file never changes. */
  readonly file: string
  /** Value of the `integrity` attribute. */
  readonly integrity: string
  readonly sizeBytes: number
  readonly gzipBytes: number
}

interface BuiltCode {
  readonly script: Uint8Array
  /** Set for scripts with chunks, which contain each other's names. */
  readonly fileName: string
  /** The parts that the script loads on demand. */
  readonly chunks: readonly { readonly fileName: string; readonly code: Uint8Array }[]
  readonly style: Uint8Array | undefined
}

/** Removes Vite's preload helper: chunks have no styles, and `modulePreload` is off. */
const withoutPreload: Plugin = {
  name: 'without-preload',
  enforce: 'pre',
  load: {
    filter: { id: /vite\/preload-helper/ },
    handler: () => 'export const __vitePreload = (load) => load()',
  },
}

const common: InlineConfig = {
  plugins: [withoutPreload],
  root: join(root, 'widget'),
  configFile: false,
  envDir: false,
  publicDir: false,
  logLevel: 'warn',
}

/** Replaces React with Preact, which is a tenth of its size. */
const preactForReact = [
  { find: /^react\/jsx-(dev-)?runtime$/, replacement: 'preact/jsx-runtime' },
  { find: /^react-dom\/client$/, replacement: 'preact/compat/client' },
  { find: /^react(-dom)?$/, replacement: 'preact/compat' },
]

const frameAliases = [
  ...preactForReact,
  // The package's browser version writes innerHTML, which Trusted Types forbid and workers do not have.
  {
    find: 'decode-named-character-reference',
    replacement: join(root, 'widget/frame/markdown/decode-entity.ts'),
  },
  // A file of `property-information`: 4 KB of attributes that no answer contains.
  { find: /^\.\/lib\/svg\.js$/, replacement: join(root, 'widget/frame/markdown/svg-schema.ts') },
]

/**
 * Property names that the build shortens in the loader. They must not occur in messages, options,
 * `ParleyChat` or the DOM, and must not be shared with the React component (`widget/host/page.ts`) or
 * the second script (`widget/host/extras.ts`).
 */
const internalNames =
  /^(attach|importScript|loadExtras|onApproach|onEscape|onToggle|paint|scriptUrl|setOpen)$/

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
      // Browsers released in 2024, which support `light-dark()`.
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      cssCodeSplit: false,
      modulePreload: false,
      assetsInlineLimit: 0,
      ...config.build,
      rolldownOptions: {
        ...config.build?.rolldownOptions,
        input: join(root, 'widget', entry),
        output,
      },
    },
  })) as Rolldown.RolldownOutput
  const chunks = built.output.filter((part) => part.type === 'chunk')
  const script = chunks.find(({ isEntry }) => isEntry)
  const style = built.output.find((part) => part.type === 'asset' && part.fileName.endsWith('.css'))
  if (script === undefined) throw new Error(`${entry} produced no script`)
  return {
    script: Buffer.from(script.code),
    fileName: script.fileName,
    chunks: chunks
      .filter((chunk) => chunk !== script)
      .map(({ fileName, code }) => ({ fileName, code: Buffer.from(code) })),
    style: style?.type === 'asset' ? Buffer.from(style.source) : undefined,
  }
}

/**
 * Bundles the React component without React, which the page provides. The banner marks it as client code for
 * server renderers.
 */
async function bundleReact(): Promise<Uint8Array> {
  const rolldownOptions = {
    external: /^react(-dom)?(\/|$)/,
    preserveEntrySignatures: 'strict',
  } as const
  const output = { format: 'es', codeSplitting: false, banner: "'use client'\n" } as const
  return (await bundle('react/index.ts', { build: { minify: false, rolldownOptions } }, output)).script
}

/** Names the file after `name` and its content. */
function write(folder: string, name: string, extension: string, code: Uint8Array): Promise<BuiltPart> {
  const digest = createHash('sha384').update(code).digest('hex')
  return writeAs(folder, `${name}-${digest.slice(0, 12)}.${extension}`, code)
}

async function writeAs(folder: string, file: string, code: Uint8Array): Promise<BuiltPart> {
  const digest = createHash('sha384').update(code).digest()
  await writeFile(join(folder, file), code)
  await writeFile(join(folder, `${file}.br`), brotliCompressSync(code))
  return {
    file,
    integrity: `sha384-${digest.toString('base64')}`,
    sizeBytes: code.length,
    gzipBytes: gzipSync(code, { level: 9 }).length,
  }
}

/** Rolldown names the scripts that load chunks, because each of them contains the names of others. */
const chunked: Rolldown.OutputOptions = {
  format: 'es',
  hashCharacters: 'hex',
  entryFileNames: ({ name }) => `${name === 'worker' ? 'worker' : 'frame'}-[hash:12].js`,
  chunkFileNames: 'chunk-[hash:12].js',
  // Merges what the first load needs into one file; a chunk would cost another request, one after the other.
  codeSplitting: { groups: [{ name: 'initial', tags: ['$initial'] }] },
}

function styleOf({ style }: BuiltCode): Uint8Array {
  return style ?? Buffer.alloc(0)
}

async function writeAll(folder: string): Promise<object> {
  const extras = await write(
    folder,
    'extras',
    'js',
    (
      await bundle(
        'extras/main.ts',
        { build: { rolldownOptions: { preserveEntrySignatures: 'strict' } } },
        { format: 'es' },
      )
    ).script,
  )
  const loader = await bundle(
    'loader/main.ts',
    // The file name is relative to the loader's URL.
    { define: { EXTRAS_FILE: JSON.stringify(extras.file) } },
    {
      format: 'iife',
      codeSplitting: false,
      minify: { compress: true, mangle: true, codegen: true, mangleProps: { include: internalNames } },
    },
  )
  const frame = await bundle('frame/main.tsx', { resolve: { alias: frameAliases } }, chunked)
  const worker = await bundle('frame/markdown/worker.ts', { resolve: { alias: frameAliases } }, chunked)
  const demo = await bundle('demo/main.ts', {}, { format: 'es', codeSplitting: false })
  const preview = await bundle('preview/main.ts', {}, { format: 'es', codeSplitting: false })
  await writeFile(join(folder, 'react.js'), await bundleReact())
  return {
    extras,
    loader: await write(folder, 'parley', 'js', loader.script),
    frameScript: await writeAs(folder, frame.fileName, frame.script),
    frameWorker: await writeAs(folder, worker.fileName, worker.script),
    frameChunks: await Promise.all(
      [...frame.chunks, ...worker.chunks].map(({ fileName, code }) => writeAs(folder, fileName, code)),
    ),
    frameStyle: await write(folder, 'frame', 'css', styleOf(frame)),
    demoScript: await write(folder, 'demo', 'js', demo.script),
    demoStyle: await write(folder, 'demo', 'css', styleOf(demo)),
    previewScript: await write(folder, 'preview', 'js', preview.script),
    previewStyle: await write(folder, 'preview', 'css', styleOf(preview)),
  }
}

await replaceBuild(webBuilds.widget, writeAll)
