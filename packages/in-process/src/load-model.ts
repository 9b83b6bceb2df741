/** Loads a GGUF file into this process with the optional package node-llama-cpp. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { ChatWrapper, Llama, LlamaContextSequence, LlamaModel } from 'node-llama-cpp'
import type { LocalModelConfig } from '../../../src/config/config.ts'
import { StartupError } from '../../../src/lib/errors.ts'

/** Number of concurrent answers; each needs a separate context. */
const ANSWERS_AT_ONCE = 2
const MOST_CONTEXT_TOKENS = 8192
/** Must match the lock file; later versions lack builds for some platforms. */
const PACKAGE = 'node-llama-cpp@3.21.1'
const MOST_COMPLAINTS = 5

type Library = typeof import('node-llama-cpp')

interface Runtime {
  readonly library: Library
  readonly llama: Llama
  /** llama.cpp's recent errors. They may contain client data, so they are not logged. */
  readonly complaints: string[]
}

/**
 * A slot that generates one answer at a time, and reuses the prefix that a prompt shares with the previous
 * prompt.
 */
export interface Place {
  readonly sequence: LlamaContextSequence
  stepTokens: number
}

export interface LocalChat {
  readonly wrapper: ChatWrapper
  readonly hasTools: boolean
  readonly places: readonly Place[]
}

export interface LocalModel extends Runtime {
  readonly id: string
  readonly created: number
  readonly model: LlamaModel
  readonly contextTokens: number
  readonly threads: number
  readonly placeCount: number
  /** Undefined for an embedding model. */
  readonly chat: LocalChat | undefined
}

/**
 * Loads the model without downloading or compiling anything. @throws StartupError if the package or file is
 * missing or unusable.
 */
export async function loadLocalModel(config: LocalModelConfig): Promise<LocalModel> {
  const file = await readFacts(config)
  const runtime = await openRuntime(config.name)
  const model = await loadModel(runtime, config, false)
  const { threads = availableParallelism() } = config
  const contextTokens = Math.min(model.trainContextSize, config.contextTokens ?? MOST_CONTEXT_TOKENS)
  const base = { ...file, ...runtime, model, contextTokens, threads, placeCount: ANSWERS_AT_ONCE }
  try {
    return { ...base, chat: isForEmbeddings(model) ? undefined : await openChat(base) }
  } catch (thrown) {
    await model.dispose()
    throw cannotLoad(config, thrown, runtime)
  }
}

/** Checks the model without reading its weights. @throws StartupError in the same cases as `loadLocalModel`. */
export async function checkLocalModel(config: LocalModelConfig): Promise<void> {
  await readFacts(config)
  const model = await loadModel(await openRuntime(config.name), config, true)
  await model.dispose()
}

async function loadModel(
  runtime: Runtime,
  config: LocalModelConfig,
  vocabOnly: boolean,
): Promise<LlamaModel> {
  runtime.complaints.length = 0
  try {
    return await runtime.llama.loadModel({ modelPath: config.path, gpuLayers: 0, vocabOnly })
  } catch (thrown) {
    // Waits for llama.cpp's log lines, which arrive after the library throws.
    await setImmediate()
    await setImmediate()
    throw cannotLoad(config, thrown, runtime)
  }
}

async function readFacts({ name, path }: LocalModelConfig): Promise<Pick<LocalModel, 'id' | 'created'>> {
  const cannotUse = (what: string, cause?: unknown) =>
    new StartupError(`The model file ${path} (provider ${name}) ${what}.`, { cause })
  const file = await open(path, constants.O_RDONLY).catch((error: NodeJS.ErrnoException) => {
    throw cannotUse(error.code === 'ENOENT' ? 'does not exist' : `cannot be read (${error.code})`, error)
  })
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw cannotUse('is not a regular file')
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
    if (buffer.toString('latin1') !== 'GGUF') throw cannotUse('is not in the GGUF format')
    return { id: basename(path).replace(/\.gguf$/i, ''), created: Math.floor(stats.mtimeMs / 1000) }
  } finally {
    await file.close()
  }
}

/** Embedding models specify how to pool vectors; 0 means no pooling. */
function isForEmbeddings({ fileInfo }: LlamaModel): boolean {
  const { pooling_type: pooling } = fileInfo.architectureMetadata as { pooling_type?: number }
  return pooling !== undefined && pooling !== 0
}

async function openChat({
  library,
  model,
  contextTokens,
  threads,
  placeCount,
}: Omit<LocalModel, 'chat'>): Promise<LocalChat> {
  const template = model.fileInfo.metadata.tokenizer.chat_template ?? ''
  const wrapper = library.resolveChatWrapper(model, {
    type: marksOfKnownFamilies.test(template) ? 'auto' : 'jinjaTemplate',
    warningLogs: false,
    fallbackToOtherWrappersOnJinjaError: false,
  })
  const context = await model.createContext({ contextSize: contextTokens, sequences: placeCount, threads })
  const places = Array.from({ length: placeCount }, () => ({
    sequence: context.getSequence(),
    stepTokens: 32,
  }))
  return { wrapper, hasTools: hasOwnTools(wrapper, library), places }
}

/**
 * Matches chat templates of model families for which the library has a parser. Other templates skip the
 * detection, which blocks the process for a second.
 */
const marksOfKnownFamilies = /<\|(channel|python_tag|recipient|from|turn)\b|<｜tool|<seed:/

/**
 * Returns whether the template supports tools. If not, the library uses its own tool syntax, on which the
 * model was not trained.
 */
function hasOwnTools(
  wrapper: ChatWrapper,
  { ChatWrapper: Base, JinjaTemplateChatWrapper }: Library,
): boolean {
  if (wrapper instanceof JinjaTemplateChatWrapper) return wrapper.usingJinjaFunctionCallTemplate
  return wrapper.settings.functions.call.prefix !== Base.defaultSettings.functions.call.prefix
}

function cannotLoad(
  { name, path }: LocalModelConfig,
  cause: unknown,
  { library, complaints }: Runtime,
): StartupError {
  const subject = `The model file ${path} (provider ${name})`
  if (cause instanceof library.InsufficientMemoryError) {
    const sentence = `${subject} does not fit into memory. Set a smaller context (PARLEY_LOCAL_CONTEXT) or use a smaller model.`
    return new StartupError(sentence, { cause })
  }
  const said = [...new Set(complaints)].join(' ')
  const reason =
    /error loading model: (.*?)( llama_|$)/s.exec(said)?.[1] ?? (said || String((cause as Error).message))
  const short = reason.replaceAll(/\s+/g, ' ').slice(0, 300).replace(/\.+$/, '')
  return new StartupError(`${subject} cannot be loaded: ${short}.`, { cause })
}

/** Shared by all models, because llama.cpp has one log per process; never released. */
let openedRuntime: Promise<Runtime> | undefined

function openRuntime(name: string): Promise<Runtime> {
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
    const sentence = `The package ${PACKAGE} does not support this machine (${where}). Run Ollama or llama-server, and set PARLEY_LOCAL_URL.`
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
    const sentence = `The in-process model (provider ${name}) needs a package that is not installed. Run \`${command}\`, or \`npm run local-models\` in a checkout of Parley.`
    throw new StartupError(sentence, { cause })
  }
}
