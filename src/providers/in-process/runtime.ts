/** The package that runs models in this process; it is there only where somebody wants that. */
import { availableParallelism } from 'node:os'
import type { Llama } from 'node-llama-cpp'
import { StartupError } from '../../lib/errors.ts'

/** The version that packages/in-process pins: later ones lack builds for some platforms. */
const PACKAGE = 'node-llama-cpp@3.21.1'
const MOST_COMPLAINTS = 5

export type Library = typeof import('node-llama-cpp')

/** The library and llama.cpp in it. */
export interface Runtime {
  readonly library: Library
  readonly llama: Llama
  /** What llama.cpp has complained of lately; it may hold what callers sent, so it is no log. */
  readonly complaints: string[]
}

/** One for the process, as there is one log for all of it; it stays, and is small beside any model. */
let openedRuntime: Promise<Runtime> | undefined

/**
 * Loads the package; nothing is downloaded or compiled.
 * @throws StartupError when it is not installed, or has nothing for this machine.
 */
export function openRuntime(name: string): Promise<Runtime> {
  openedRuntime ??= startRuntime(name).catch((error: unknown) => {
    openedRuntime = undefined
    throw error
  })
  return openedRuntime
}

async function startRuntime(name: string): Promise<Runtime> {
  const library = await importLibrary(name)
  const complaints: string[] = []
  const options = {
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    gpu: false,
    maxThreads: availableParallelism(),
    logLevel: library.LlamaLogLevel.error,
    logger(_level: unknown, line: string) {
      complaints.push(line.trim())
      if (complaints.length > MOST_COMPLAINTS) complaints.shift()
    },
  } as const
  const llama = await library.getLlama(options).catch((cause: unknown) => {
    const where = `${process.platform}-${process.arch}`
    const sentence = `The package ${PACKAGE} has nothing that runs on this machine (${where}); run Ollama or llama-server and set PARLEY_LOCAL_URL.`
    throw new StartupError(sentence, { cause })
  })
  return { library, llama, complaints }
}

async function importLibrary(name: string): Promise<Library> {
  try {
    return await import('node-llama-cpp')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    const command = `npm install --no-save --ignore-scripts ${PACKAGE}`
    const sentence = `A model that runs in this process (provider ${name}) needs a package that is not installed; \`${command}\` installs it, and in a checkout of Parley \`npm run local-models\`.`
    throw new StartupError(sentence, { cause })
  }
}
