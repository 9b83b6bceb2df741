/** Makes the publishable package in `dist/package`: plain JavaScript with its types, and everything the service reads beside it. ADR 0035. */
import { spawnSync } from 'node:child_process'
import { cp, glob, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { listTypes, type OwnManifest, renderManifest } from './package-manifest.ts'
import { finishTypes } from './package-types.ts'
import { root } from './web-folder.ts'

const target = join(root, 'dist/package')
const fresh = `${target}.${process.pid}`

/** @throws Error when the compiler refuses; it has said why. */
function compile(project: string, folder: string): void {
  const words = [join(root, 'node_modules/typescript/bin/tsc'), '-p', project, '--outDir', folder]
  const { status } = spawnSync(process.execPath, words, { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`${project} does not compile`)
}

async function copy(path: string): Promise<void> {
  await mkdir(dirname(join(fresh, path)), { recursive: true })
  await cp(join(root, path), join(fresh, path), { recursive: true })
}

async function fill(): Promise<void> {
  compile('tsconfig.build.json', fresh)
  // As they are: pages load them, and the compiler would make modules of them.
  for await (const path of glob('src/**/*.{js,css,svg}', { cwd: root })) await copy(path)
  for (const path of ['dist/console', 'dist/widget', 'openapi.json', 'README.md', 'CHANGELOG.md', 'LICENSE'])
    await copy(path)
  compile('widget/tsconfig.build.json', join(fresh, 'dist/widget/types'))
  const own = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as OwnManifest
  const manifest = renderManifest(own)
  await finishTypes(fresh, listTypes(manifest))
  await writeFile(join(fresh, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

try {
  await fill()
  await rm(target, { recursive: true, force: true })
  await rename(fresh, target)
} finally {
  await rm(fresh, { recursive: true, force: true })
}
