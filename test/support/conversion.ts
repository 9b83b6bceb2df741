/** Runs the converter with all or some of the installed programs, and inspects media files. */
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

export interface TestConverterOptions {
  readonly wallMs?: number
  readonly memoryBytes?: number
  /**
   * The programs that the converter can find; all by default. A string is a shell script that replaces the
   * program.
   */
  readonly programs?: Readonly<Partial<Record<keyof Programs, string | true>>>
}

/** A conversion's result, and the files in its work folder afterwards. */
export interface ConversionOutcome {
  readonly converted?: Converted
  /** The verdict and the message of a rejection. */
  readonly refused?: string
  readonly left: readonly string[]
}

/** The converter with all programs, which tests share because creating it takes a while. */
let usual: Promise<Converter> | undefined

/** Creates a converter with a work folder that is removed after the test. */
export async function createTestConverter(options?: TestConverterOptions) {
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
  ): Promise<ConversionOutcome> {
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

async function makeConverter(
  folder: string,
  { programs, ...limits }: TestConverterOptions = {},
): Promise<Converter> {
  const searchPath = programs === undefined ? (process.env.PATH ?? '') : await makePath(folder, programs)
  const conversion = { wallMs: 60_000, memoryBytes: 2 * 1024 ** 3, searchPath, tries: 1, ...limits }
  return createConverter({ config: { conversion }, clock: systemClock })
}

/** Creates a folder that contains only these programs; returns its path, for use as PATH. */
export async function makePath(
  folder: string,
  programs: TestConverterOptions['programs'] = {},
): Promise<string> {
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

/** Runs this machine's ffmpeg; returns its output. */
export async function ffmpeg(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(getProgram('ffmpeg'), ['-nostdin', '-v', 'error', ...args])
  return stdout
}

/** Encodes a test video with a tone. `source` is an ffmpeg video source. */
export async function makeVideo(
  path: string,
  encoderOptions: readonly string[] = h264,
  source = 'testsrc2=size=320x240:rate=10:duration=2',
): Promise<string> {
  const inputs = ['-f', 'lavfi', '-i', source, '-f', 'lavfi', '-i', 'sine=duration=2']
  await ffmpeg(...inputs, ...encoderOptions, '-y', path)
  return path
}

/** Encoder options for H.264 and AAC, the codecs that a conversion copies without re-encoding. */
export const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac']

/** Lists the checksums of a video's decoded frames. */
export async function listFrames(path: string): Promise<string[]> {
  const lines = (await ffmpeg('-i', path, '-map', '0:v:0', '-f', 'framemd5', '-')).split('\n')
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(',').at(-1)?.trim() ?? '')
}

/** Returns ffprobe's JSON description of a file. */
export async function probe(path: string) {
  const entries = 'stream=codec_name,codec_type,width,height,pix_fmt:stream_tags:format_tags:format=duration'
  const args = ['-v', 'error', '-show_entries', entries, '-show_chapters', '-of', 'json', path]
  const { stdout } = await run('ffprobe', args)
  return JSON.parse(stdout)
}

/** Lists the names of an MP4 file's top-level boxes, in order. */
export async function listBoxes(path: string): Promise<string[]> {
  const bytes = await readFile(path)
  const names: string[] = []
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at))
    names.push(bytes.toString('latin1', at + 4, at + 8))
  return names
}

/** Lists the command lines of running processes that contain the text. */
export async function listProcesses(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(text)).map((line) => line.replaceAll('\0', ' '))
}
