/** Stands on which files are converted: by the real converter with the programs of this machine, or with some of them only. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findCommand } from '../../scripts/programs.mjs'
import {
  type ConversionRequest,
  type Converted,
  type Converter,
  createConverter,
} from '../../src/conversion/conversion.ts'
import { type ConversionKind, ConversionRejection } from '../../src/conversion/job.ts'
import type { Programs } from '../../src/conversion/programs.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { makeFolder } from './process.ts'
import { getProgram } from './programs.ts'

export interface StandOptions {
  readonly wallMs?: number
  readonly memoryBytes?: number
  /** Only these are found; a text is a shell script that stands in for one. Unset finds all that this machine has. */
  readonly programs?: Readonly<Partial<Record<keyof Programs, string | true>>>
}

/** What came of a conversion, and what it left in its folder. */
export interface Ended {
  readonly converted?: Converted
  /** The verdict and the sentence. */
  readonly refused?: string
  readonly left: readonly string[]
}

/** Looks at the machine once. */
let usual: Promise<Converter> | undefined

/** Converts files in a folder that goes with the test. */
export async function makeStand(options?: StandOptions) {
  const folder = await makeFolder()
  const workFolder = join(folder, 'work')
  await mkdir(workFolder)
  usual ??= makeConverter(folder)
  const converter = await (options === undefined ? usual : makeConverter(folder, options))

  const request = (kind: ConversionKind, source: string): ConversionRequest => ({
    kind,
    source,
    workFolder,
    signal: new AbortController().signal,
    onProgress: () => {},
  })

  async function convert(
    kind: ConversionKind,
    content: string | Uint8Array,
    more: Partial<ConversionRequest> = {},
  ): Promise<Ended> {
    const source = typeof content === 'string' && content.startsWith('/') ? content : join(folder, 'upload')
    if (source !== content) await writeFile(source, content)
    try {
      const converted = await converter.convert({ ...request(kind, source), ...more })
      return { converted, left: await readdir(workFolder) }
    } catch (error) {
      if (!(error instanceof ConversionRejection)) throw error
      return { refused: `${error.verdict}: ${error.message}`, left: await readdir(workFolder) }
    }
  }

  return { folder, workFolder, converter, convert }
}

async function makeConverter(folder: string, { programs, ...limits }: StandOptions = {}): Promise<Converter> {
  const searchPath = programs === undefined ? (process.env.PATH ?? '') : await makePath(folder, programs)
  const conversion = { wallMs: 60_000, memoryBytes: 2 * 1024 ** 3, searchPath, tries: 1, ...limits }
  return createConverter({ config: { conversion }, clock: systemClock })
}

/** A search path on which nothing but these programs is found. */
export async function makePath(folder: string, programs: StandOptions['programs'] = {}): Promise<string> {
  const path = join(folder, 'programs')
  await mkdir(path)
  for (const [name, script] of Object.entries(programs)) {
    if (script === true) await symlink(findCommand([name]) ?? '', join(path, name))
    else {
      await writeFile(join(path, name), `#!/bin/sh\n${script}\n`)
      await chmod(join(path, name), 0o755)
    }
  }
  return path
}

const run = promisify(execFile)

/** Runs this machine's ffmpeg; what it printed. */
export async function ffmpeg(...words: readonly string[]): Promise<string> {
  const { stdout } = await run(getProgram('ffmpeg'), ['-nostdin', '-v', 'error', ...words])
  return stdout
}

/** A short video of moving shapes, 320 x 240 unless `pictures` says otherwise, and a tone; `words` say how it is encoded. */
export async function makeVideo(
  path: string,
  words: readonly string[] = h264,
  pictures = 'testsrc2=size=320x240:rate=10:duration=2',
): Promise<string> {
  const inputs = ['-f', 'lavfi', '-i', pictures, '-f', 'lavfi', '-i', 'sine=duration=2']
  await ffmpeg(...inputs, ...words, '-y', path)
  return path
}

/** What needs no encoding. The index is at the end. */
export const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac']

/** The checksum of each decoded picture of a video. */
export async function listFrames(path: string): Promise<string[]> {
  const lines = (await ffmpeg('-i', path, '-map', '0:v:0', '-f', 'framemd5', '-')).split('\n')
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(',').at(-1)?.trim() ?? '')
}

/** What ffprobe says of the streams and the container of a file. */
export async function probe(path: string) {
  const entries = 'stream=codec_name,codec_type,width,height,pix_fmt:stream_tags:format_tags:format=duration'
  const words = ['-v', 'error', '-show_entries', entries, '-show_chapters', '-of', 'json', path]
  const { stdout } = await run('ffprobe', words)
  return JSON.parse(stdout)
}

/** The names of the boxes an MP4 consists of, in their order. */
export async function listBoxes(path: string): Promise<string[]> {
  const bytes = await readFile(path)
  const names: string[] = []
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at))
    names.push(bytes.toString('latin1', at + 4, at + 8))
  return names
}

/** The command lines of all processes of this machine that hold a text. */
export async function listProcesses(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(text)).map((line) => line.replaceAll('\0', ' '))
}
