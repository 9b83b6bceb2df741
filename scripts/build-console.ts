/**
 * Builds the console from `client/` to `dist/console/`: one script per page, styles, and a manifest of their
 * dependencies.
 */
import { writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzipSync } from 'node:zlib'
import { build, type Rolldown } from 'vite'
import { replaceBuild, root } from './web-folder.ts'
import { webBuilds } from './web-sources.mjs'

const compress = promisify(brotliCompress)

/** A console file; its name contains a digest of its content. */
interface BuiltFile {
  readonly file: string
  readonly sizeBytes: number
  readonly gzipBytes: number
  /** The scripts that it imports and the styles that it needs. */
  readonly needs: readonly string[]
  /** The scripts that it imports dynamically. */
  readonly later: readonly string[]
}

async function bundle(): Promise<Rolldown.RolldownOutput> {
  return (await build({
    root: join(root, 'client'),
    base: '/console/assets/',
    configFile: false,
    envDir: false,
    publicDir: false,
    logLevel: 'warn',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      target: 'es2022',
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      chunkSizeWarningLimit: 700,
      rolldownOptions: {
        // Ignores directives such as `use client`, which matter only for server rendering.
        onLog: (level, log, tell) => {
          if (log.code !== 'MODULE_LEVEL_DIRECTIVE') tell(level, log)
        },
        input: { main: join(root, 'client/main.tsx'), first: join(root, 'client/first-paint.ts') },
        output: {
          entryFileNames: '[name]-[hash].js',
          chunkFileNames: ({ name, facadeModuleId }) => `${nameOf(name, facadeModuleId)}-[hash].js`,
          assetFileNames: '[name]-[hash][extname]',
        },
      },
    },
  })) as Rolldown.RolldownOutput
}

/** Names a page's chunk after its folder. */
function nameOf(name: string, path: string | null | undefined): string {
  return name === 'page' && path ? basename(dirname(path)) : name
}

async function writeFiles(folder: string): Promise<object> {
  const { output } = await bundle()
  const files: BuiltFile[] = []
  for (const part of output) {
    const code = Buffer.from(part.type === 'chunk' ? part.code : part.source)
    const file = basename(part.fileName)
    const small = await compress(code, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
    await writeFile(join(folder, `${file}.br`), small)
    files.push({
      file,
      sizeBytes: code.length,
      gzipBytes: gzipSync(code, { level: 9 }).length,
      needs: part.type === 'chunk' ? needsOf(part) : [],
      later: part.type === 'chunk' ? part.dynamicImports : [],
    })
  }
  const entry = (name: string) =>
    output.find((part) => part.type === 'chunk' && part.isEntry && part.name === name)?.fileName
  return { main: entry('main'), first: entry('first'), files }
}

function needsOf(chunk: Rolldown.OutputChunk): string[] {
  const { viteMetadata } = chunk as Rolldown.OutputChunk & {
    viteMetadata?: { importedCss: ReadonlySet<string> }
  }
  return [...chunk.imports, ...(viteMetadata?.importedCss ?? [])]
}

await replaceBuild(webBuilds.console, writeFiles)
