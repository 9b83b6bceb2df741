/** Tests that external programs that process uploads are isolated, limited and killed with their children. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { findPrograms, type Programs } from '../../src/conversion/programs.ts'
import { createSandbox, type Tool } from '../../src/conversion/sandbox.ts'
import { createTestConverter, h264, listProcesses, makeVideo } from '../support/conversion.ts'
import { eventually, makeFolder } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const all = await findPrograms(process.env.PATH ?? '')
const { bwrap: _without, ...plain } = all
const MIB = 1024 ** 2
/** Address space, in bytes, that Node reserves when it starts. */
const reservedBytes = 1536 * MIB
const node: Tool = { program: process.execPath, reads: [], check: ['--version'], reservedBytes }
const limits = { wallMs: 60_000, memoryBytes: 256 * MIB }
const canIsolate = await createSandbox(all, limits).isIsolated(node)

/** Runs a Node script in a sandbox with a new folder. */
async function runScript(programs: Programs, toScript: (folder: string) => string, given = limits) {
  const folder = await makeFolder()
  const { signal } = new AbortController()
  const args = ['-e', toScript(folder)]
  const run = { args, source: folder, folder, outputBytes: MIB, signal }
  return { folder, ...(await createSandbox(programs, given).run(node, run)) }
}

const ways: [way: string, programs: Programs][] = [
  ...(canIsolate ? [['with bubblewrap', all] as [string, Programs]] : []),
  ['without bubblewrap', plain],
]

describe.each(ways)('%s', (_way, programs) => {
  test('an external program can print, write files and set its exit code', async () => {
    const end = await runScript(programs, (folder) => {
      const path = JSON.stringify(join(folder, 'made'))
      return `require('fs').writeFileSync(${path}, ''); console.log(1); console.error(2); process.exitCode = 3`
    })
    expect(end).toMatchObject({ code: 3, killedBy: null, stdout: '1\n', stderr: '2\n' })
    expect(existsSync(join(end.folder, 'made'))).toBe(true)
  })

  test("an external program cannot read the server's environment variables", async () => {
    const { stdout } = await runScript(programs, () => 'console.log(Object.keys(process.env).join())')
    expect(
      stdout
        .trim()
        .split(',')
        .filter((name) => name !== 'PWD'),
    ).toEqual(['LC_ALL'])
  })

  test('an external program fails when it exceeds its memory limit', async () => {
    const allocate = (mib: number) => () =>
      `const a = Buffer.alloc(${mib} * 1048576, 1); console.log(a.length)`
    expect(await runScript(programs, allocate(64))).toMatchObject({ code: 0 })
    expect((await runScript(programs, allocate(1900))).code).not.toBe(0)
  })

  test('an external program is killed when it exceeds its CPU time', async () => {
    const end = await runScript(programs, () => 'for (;;);', { ...limits, wallMs: 250 })
    expect(end.code).not.toBe(0)
  })

  test('an external program cannot write a file that exceeds its size limit', async () => {
    const write = (mib: number) => (folder: string) =>
      `require('fs').writeFileSync(${JSON.stringify(join(folder, 'made'))}, Buffer.alloc(${mib} * 1048576))`
    expect(await runScript(programs, write(1))).toMatchObject({ code: 0 })
    expect((await runScript(programs, write(2))).code).not.toBe(0)
  })

  test("an external program's output is truncated", async () => {
    const script = `const line = 'x'.repeat(1048576); for (let i = 0; i < 8; i++) { process.stdout.write(line); process.stderr.write(line) }`
    const { stdout, stderr } = await runScript(programs, () => script)
    expect([stdout.length, stderr.length]).toEqual([MIB, 4096])
  })

  test('an aborted conversion kills the external program and its children', async () => {
    const { folder, converter, workFolder } = await makeHanging(programs)
    const source = await makeVideo(join(folder, 'clip.mp4'), [...h264, '-an'])
    const leaving = new AbortController()
    const { signal } = leaving
    const conversion = converter.convert({ kind: 'video', source, workFolder, signal, onProgress: () => {} })
    conversion.catch(() => {})
    expect(await eventually(async () => (await listProcesses(marker)).length > 1, true)).toBe(true)
    leaving.abort(new Error('enough'))
    await expect(conversion).rejects.toThrow('enough')
    expect(await listProcesses(marker)).toEqual([])
    await expect(
      converter.convert({ kind: 'video', source, workFolder, signal, onProgress: () => {} }),
    ).rejects.toThrow('enough')
  })

  test('a conversion that times out is rejected and leaves no files or processes', async () => {
    const { folder, convert } = await makeHanging(programs, 400)
    const source = await makeVideo(join(folder, 'clip.mp4'), [...h264, '-an'])
    expect(await convert('video', source)).toEqual({
      refused: 'unconvertible: The conversion took longer than 0.4 seconds.',
      left: [],
    })
    expect(await listProcesses(marker)).toEqual([])
  })

  test('a video is rejected when its conversion exceeds the memory limit', async () => {
    const { folder, convert } = await createTestConverter({
      memoryBytes: 450 * MIB,
      programs: pick(programs),
    })
    const args = ['-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p', '-an', '-frames:v', '4']
    const source = await makeVideo(join(folder, 'clip.mov'), args, 'color=size=3000x3000:rate=2')
    const { refused, left } = await convert('video', source)
    expect(refused).toBe('unconvertible: Converting the video exceeds the memory limit.')
    expect(left).toEqual([])
  })
})

/** A unique duration for `sleep`, used to find the processes of this test. */
const marker = `98${process.pid}`

function pick(programs: Programs) {
  return Object.fromEntries(Object.keys(programs).map((name) => [name, true as const]))
}

/** Creates a converter whose ffmpeg starts a child process and does not exit. */
function makeHanging(programs: Programs, wallMs = 60_000) {
  const ffmpeg = `[ "$1" = -version ] && exit; sleep ${marker} & sleep ${marker}`
  return createTestConverter({ wallMs, programs: { ...pick(programs), ffmpeg } })
}

test('external programs are killed when their server is killed', async () => {
  const { folder, workFolder } = await makeHanging(all)
  const source = await makeVideo(join(folder, 'clip.mp4'), [...h264, '-an'])
  const script = fileURLToPath(new URL('../support/convert-forever.ts', import.meta.url))
  const server = spawn(process.execPath, [script, source, workFolder, join(folder, 'programs')])
  onTestFinished(() => void server.kill('SIGKILL'))
  expect(await eventually(async () => (await listProcesses(marker)).length > 1, true)).toBe(true)
  server.kill('SIGKILL')
  await once(server, 'close')
  expect(await eventually(async () => (await listProcesses(`sleep\0${marker}`)).length, 0)).toBe(0)
})

describe.runIf(canIsolate)('an external program in bubblewrap', () => {
  test('cannot access the network or files outside its folder', async () => {
    const server = createServer((socket) => void socket.end())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const secret = join(await makeFolder(), 'secret')
    await writeFile(secret, 'secret')
    const script = () => `
      require('net').connect(${port}, '127.0.0.1').on('connect', () => console.log('connected')).on('error', () => {})
      try { console.log(require('fs').readFileSync(${JSON.stringify(secret)}, 'utf8')) } catch {}
      try { require('fs').writeFileSync('/usr/made', ''); console.log('written') } catch {}`
    expect((await runScript(plain, script)).stdout).toContain('connected')
    expect(await runScript(all, script)).toMatchObject({ code: 0, stdout: '' })
  })

  test('runs without isolation if bubblewrap fails', async () => {
    const broken = { ...plain, bwrap: '/bin/false' }
    expect(await createSandbox(broken, limits).isIsolated(node)).toBe(false)
    expect(await runScript(broken, () => 'console.log(1)')).toMatchObject({ code: 0, stdout: '1\n' })
  })
})

test('a missing external program causes a server error instead of a rejected upload', async () => {
  const run = { args: [], source: '/', folder: '/tmp', outputBytes: 1, signal: new AbortController().signal }
  const tool = { ...node, program: '/nowhere/ffmpeg' }
  await expect(createSandbox({}, limits).run(tool, run)).rejects.toThrow('ENOENT')
})
