/** Defines the `parley` command with its subcommands and options, and reports its errors. */
import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { ServiceError, StartupError } from '../lib/errors.ts'
import {
  parseCount,
  parseMoment,
  parseName,
  parseOverlap,
  parseOwnLimit,
  parseTime,
  parseWorkers,
  withJson,
} from './arguments.ts'
import { addBudgetsCommands } from './budgets-commands.ts'
import { printNotice, printResult } from './output.ts'

export async function runCommand(args: readonly string[]): Promise<void> {
  // When the output pipe closes, as with `| head`, sets the exit code but does not stop a running server.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => {
      process.exitCode = 1
    })
  }
  try {
    await createProgram().parseAsync(args)
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** Loads each command's code on demand, because most commands need only a small part of the service. */
function createProgram(): Command {
  const program = new Command('parley')
    .description('Self-hosted conversational agents with a chat API.')
    .version(packageJson.version)
    .exitOverride()
  addServerCommands(program)
  addKeysCommands(program.command('keys').description('create, list, change, rotate and revoke parent keys'))
  addAgentsCommands(program.command('agents').description('list, read, apply, export and delete agents'))
  addProvidersCommands(program.command('providers').description('list, add, delete and test model providers'))
  addPricesCommands(program.command('prices').description('list, show, check and import prices of models'))
  addConversationsCommands(
    program.command('conversations').description('list, show, export, delete and prune stored conversations'),
  )
  addVisitorsCommands(program.command('visitors').description('find, export and erase visitors'))
  addWebhooksCommands(program.command('webhooks').description('list, create, test and delete webhooks'))
  addBudgetsCommands(program.command('budgets').description('list, set, grant, adjust and delete budgets'))
  addDataCommands(program)
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .option('--check', 'fail if openapi.json is out of date')
    .action(async ({ check }) => (await import('./commands/openapi.ts')).openapi(check))
  withJson(program.command('version'))
    .description('print the version')
    .action(({ json }) => printResult(json, { version: packageJson.version }, packageJson.version))
  return program
}

function addServerCommands(program: Command): void {
  program
    .command('serve')
    .description('run the service')
    .option(
      '--workers <count>',
      'number of server processes; more than one requires PostgreSQL',
      parseWorkers,
      1,
    )
    .action(async ({ workers }) => (await import('./commands/serve.ts')).serve(workers))
  withJson(program.command('sign-in'))
    .description('print a one-time link that signs in to the console, valid for 15 minutes')
    .action(async ({ json }) => (await import('./commands/sign-in.ts')).signIn(json))
  withJson(program.command('doctor'))
    .description('check this machine, the settings and the data, and print how to fix problems')
    .action(async ({ json }) => (await import('./commands/doctor.ts')).doctor(json))
}

function addKeysCommands(keys: Command): void {
  const load = () => import('./commands/keys.ts')
  withJson(keys.command('create'))
    .description('create a parent key and print it once')
    .requiredOption('--name <name>', 'name of the key, such as the service that uses it', parseName)
    .option('--manage-keys', 'let the key create other keys through the API and manage them')
    .action(async ({ name, manageKeys, json }) => (await load()).create(name, manageKeys === true, json))
  withJson(keys.command('generate'))
    .description('print a well-formed parent key without registering it (for PARLEY_PARENT_KEY)')
    .action(async ({ json }) => (await load()).generate(json))
  withJson(keys.command('list'))
    .description('list parent keys without their secrets')
    .action(async ({ json }) => (await load()).list(json))
  withJson(keys.command('update <id>'))
    .description('change the name, permission, expiry or limits of a parent key')
    .option('--name <name>', 'new name of the key', parseName)
    .option('--manage-keys', 'let the key create other keys through the API and manage them')
    .option('--no-manage-keys', 'do not let the key create and manage other keys')
    .option(
      '--expires <time>',
      'time at which the key expires, such as 2030-01-31T12:00Z, or never',
      parseTime,
    )
    .option(
      '--requests-per-minute <count>',
      "maximum number of requests per minute; none removes the key's own limit",
      parseOwnLimit,
    )
    .option(
      '--max-streams <count>',
      "maximum number of concurrent streams; none removes the key's own limit",
      parseOwnLimit,
    )
    .action(async (id, options) => (await load()).update(id, options))
  withJson(keys.command('disable <id>'))
    .description('reject a parent key and the keys of its agents until it is enabled')
    .action(async (id, { json }) => (await load()).disable(id, json))
  withJson(keys.command('enable <id>'))
    .description('accept a disabled parent key again')
    .action(async (id, { json }) => (await load()).enable(id, json))
  withJson(keys.command('rotate <id>'))
    .description('replace the secret of a parent key and print the new key once')
    .option('--overlap <seconds>', 'seconds for which the old secret still works', parseOverlap, 0)
    .action(async (id, { overlap, json }) => (await load()).rotate(id, overlap, json))
  withJson(keys.command('revoke <id>'))
    .description('revoke a parent key and the keys of its agents; this cannot be undone')
    .option('--with-created', 'also revoke the keys that this key created, directly or through other keys')
    .action(async (id, { withCreated, json }) => (await load()).revoke(id, withCreated === true, json))
}

function addAgentsCommands(agents: Command): void {
  const load = () => import('./commands/agents.ts')
  const add = (usage: string) =>
    withJson(agents.command(usage)).option(
      '--key <key>',
      'the parent key or its id; required if there are several keys',
    )
  add('list')
    .description('list the agents of a parent key, newest first')
    .action(async (options) => (await load()).list(options))
  add('get <id>')
    .description('print the stored definition of an agent')
    .option('--markdown', 'print it as Markdown')
    .action(async (id, options) => (await load()).get(id, options))
  add('apply <path>')
    .description('show the changes that definition files would make to agents; with --yes, apply them')
    .option('--yes', 'apply the changes')
    .option('--show-keys', 'print the keys of created agents')
    .option('--note <text>', 'what the new versions change, for the list of versions')
    .option('--url <url>', 'use the API of the server at this URL instead of the database')
    .addHelpText('after', fileMatchingHelp)
    .action(async (path, options) => (await import('./commands/agents-apply.ts')).apply(path, options))
  add('export <folder>')
    .description('write the stored definition of each agent to a file')
    .option(
      '--force',
      'overwrite files with different content, and delete files of these agents that have outdated names',
    )
    .addHelpText('after', fileNamingHelp)
    .action(async (folder, options) => (await load()).exportTo(folder, options))
  add('delete <id>')
    .description('delete an agent, its versions and its key; this cannot be undone')
    .option('--yes', 'confirm the deletion')
    .action(async (id, options) => (await load()).remove(id, options))
}

const fileMatchingHelp = `
File names end in .yaml, .yml or .md. A file updates the agent whose id is in
the file name, as in files written by \`parley agents export\`. If the file name
contains no id, the file updates the only agent with the same name. If there is
no such agent, the file creates one. All files are checked before the first
change. Agents without a file are never deleted.

With --url, the command needs a complete parent key, in --key or in the
environment variable PARLEY_KEY. The process list can reveal --key to others.`

const fileNamingHelp = `
Each file is named after the agent's name and id, such as
guide.agent-4fKq0ZbT1mXcVd7WnR2s.yaml. Without --force, nothing is written if
this would change an existing file, or delete a file of the same agent that has
an outdated name.`

function addProvidersCommands(providers: Command): void {
  const load = () => import('./commands/providers.ts')
  withJson(providers.command('list'))
    .description('list the model providers in the configuration and in the database')
    .action(async ({ json }) => (await load()).list(json))
  withJson(providers.command('add <name>'))
    .description('add a model provider, which running servers use without a restart')
    .option('--preset <id>', 'known provider, such as openai, anthropic, google, openrouter, ollama or vllm')
    .option('--url <url>', 'base URL, such as https://api.openai.com/v1')
    .option('--local', 'the provider is Ollama or llama-server')
    .option('--key-file <path>', 'file that contains the API key (- for standard input)')
    .action(async (name, options) => (await load()).add(name, options))
  withJson(providers.command('remove <name>'))
    .description('delete a model provider and its key')
    .option('--yes', 'confirm the deletion')
    .action(async (name, { yes, json }) => (await load()).remove(name, yes === true, json))
  withJson(providers.command('test <name>'))
    .description('list the models of a provider; fail if it does not respond')
    .action(async (name, { json }) => (await load()).test(name, json))
}

function addPricesCommands(prices: Command): void {
  const load = () => import('./commands/prices/prices.ts')
  withJson(prices.command('list'))
    .description('list the prices of the models of all providers, in US dollars per million tokens')
    .action(async ({ json }) => (await load()).list(json))
  withJson(prices.command('show <model>'))
    .description('print the current price of a model, such as far/my-model')
    .action(async (model, { json }) => (await load()).show(model, json))
  withJson(prices.command('check'))
    .description('list the models without a price; fail if a budget refuses one of them')
    .action(async ({ json }) => (await load()).check(json))
  withJson(prices.command('import <file>'))
    .description('set the prices in a file, in the format of `prices` in PARLEY_CONFIG')
    .action(async (file, { json }) => (await load()).importFrom(file, json))
}

function addVisitorsCommands(visitors: Command): void {
  const load = () => import('./commands/conversations/visitors.ts')
  withJson(visitors.command('find <text>'))
    .description('list the visitors whose id, subject, email address or name contains the text')
    .option('--key <key>', 'only visitors of this parent key, given as the key or its id')
    .action(async (text, options) => (await load()).find(text, options))
  withJson(visitors.command('export <id>'))
    .description('print a visitor and their turns as JSON Lines, with or without --json')
    .action(async (id) => (await load()).exportOne(id))
  withJson(visitors.command('erase [id]'))
    .description('delete all data of a visitor and print a receipt; this cannot be undone')
    .option('--receipts <file>', 'erase the visitors in these receipts again, such as after a restore')
    .option('--yes', 'confirm the deletion')
    .action(async (id, options) => (await load()).erase(id, options))
}

function addWebhooksCommands(webhooks: Command): void {
  const load = () => import('./commands/conversations/webhooks.ts')
  const keyHelp = 'parent key that owns the webhooks, given as the key or its id'
  withJson(webhooks.command('list'))
    .description('list the webhooks of a parent key')
    .option('--key <key>', keyHelp)
    .action(async (options) => (await load()).list(options))
  withJson(webhooks.command('create <url>'))
    .description('create a webhook and print its secret')
    .requiredOption('--events <events>', 'event types separated by commas, such as conversation.created')
    .option('--agent <id>', 'only the events of this agent')
    .option('--include-text', 'include conversation text in the events')
    .option('--key <key>', keyHelp)
    .action(async (url, options) => (await load()).create(url, options))
  withJson(webhooks.command('test <id>'))
    .description('send a test event; fail if the receiver does not accept it')
    .action(async (id, { json }) => (await load()).test(id, json))
  withJson(webhooks.command('delete <id>'))
    .description('delete a webhook with its deliveries')
    .option('--yes', 'confirm the deletion')
    .action(async (id, options) => (await load()).remove(id, options))
}

function addConversationsCommands(conversations: Command): void {
  const load = () => import('./commands/conversations.ts')
  const addFiltered = (usage: string) =>
    withJson(conversations.command(usage))
      .option('--key <key>', 'only conversations of this parent key, given as the key or its id')
      .option('--agent <id>', 'only conversations of this agent')
      .option(
        '--from <time>',
        'only conversations created at this time or later, such as 2030-01-31',
        parseMoment,
      )
      .option('--to <time>', 'only conversations created before this time', parseMoment)
      .option('--search <words>', 'only conversations with a message that contains these words')
      .option('--channel <name>', 'only conversations from this channel: widget, api or console')
      .option('--mode <mode>', 'only conversations in this mode: model, waiting or person')
      .option('--assignee <name>', 'only conversations that this person answers')
      .option('--visitor <id>', 'only conversations of this visitor')
      .option('--tag <tag>', 'only conversations with this tag')
      .option('--rating <value>', 'only conversations with a turn that has this rating: up or down')
      .option(
        '--reason <reason>',
        'only conversations with a rating, or an incomplete or cancelled turn, that has this reason',
      )
      .option(
        '--status <status>',
        'only conversations with a turn that has this status; "failed" also selects answers that an error cut off, and "unanswered" those whose newest message has no answer',
      )
      .option('--error <code>', 'only conversations with a turn that failed with this error code')
      .option('--tool <name>', 'only conversations with a turn that called this tool')
      .option(
        '--model <id>',
        'only conversations with a turn that used this model, given as its id or provider/id',
      )
      .option(
        '--agent-version <number>',
        'only conversations with a turn that used this version of the agent',
        parseCount,
      )
      .option('--min-tokens <count>', 'only conversations with at least this number of tokens', parseCount)
  addFiltered('list')
    .description('list conversations, newest first')
    .option('--limit <count>', 'maximum number of conversations (50)', parseCount)
    .action(async (options) => (await load()).list(options))
  withJson(conversations.command('show <id>'))
    .description('print the last turns of a conversation')
    .option('--limit <count>', 'maximum number of turns (20)', parseCount)
    .action(async (id, options) => (await load()).show(id, options))
  addFiltered('export')
    .description('print all turns as JSON Lines, with or without --json')
    .option('--limit <count>', 'maximum number of turns (unlimited)', parseCount)
    .action(async (options) => (await load()).exportAll(options))
  withJson(conversations.command('delete <id>'))
    .description('delete a conversation with its turns; this cannot be undone')
    .option('--yes', 'confirm the deletion')
    .action(async (id, options) => (await load()).remove(id, options))
  withJson(conversations.command('prune'))
    .description('delete expired conversations now (a running server does this every ten minutes)')
    .action(async ({ json }) => (await load()).prune(json))
  withJson(conversations.command('reindex'))
    .description('rebuild the search index of all conversations')
    .action(async ({ json }) => (await load()).reindex(json))
}

function addDataCommands(program: Command): void {
  withJson(program.command('migrate'))
    .description('migrate the database to this version and exit (`serve` also does this)')
    .action(async ({ json }) => (await import('./commands/migrate.ts')).migrate(json))
  withJson(program.command('backup <archive>'))
    .description('write all rows and files to one archive (.tar, .tar.gz or .tar.zst; - for standard output)')
    .option('--without-conversations', 'omit the stored conversations')
    .action(async (archive, options) => (await import('./commands/backup.ts')).backup(archive, options))
  withJson(program.command('restore <archive>'))
    .description('restore an archive to an empty data directory (- for standard input)')
    .action(async (archive, { json }) => (await import('./commands/backup.ts')).restore(archive, json))
  const store = program
    .command('store')
    .description('copy data to PostgreSQL and S3, and repair stored files')
  withJson(store.command('copy'))
    .description(
      'copy the rows of the data directory to the empty PostgreSQL database in DATABASE_URL, and the files to S3_BUCKET if it is set',
    )
    .action(async ({ json }) => (await import('./commands/store.ts')).storeCopy(json))
  withJson(store.command('adopt'))
    .description(
      'mark the stored files as belonging to this database, even if another installation stored them',
    )
    .action(async ({ json }) => (await import('./commands/store.ts')).storeAdopt(json))
  withJson(store.command('orphans'))
    .description('count stored files that no row refers to')
    .option('--delete', 'delete them; this cannot be undone')
    .action(async (options) => (await import('./commands/store.ts')).storeOrphans(options))
}

/**
 * Prints one sentence for an error that the operator can fix and returns the exit code. Rethrows other
 * errors.
 */
function report(error: unknown): number {
  // Commander has already printed the help or the error.
  if (error instanceof CommanderError) return error.exitCode
  const sentence = toSentence(error)
  if (sentence === undefined) throw error
  printNotice(`parley: ${sentence}`)
  return 1
}

function toSentence(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (error instanceof StartupError) return error.message
  // Adds a full stop, because messages that start with a field's name have none.
  if (error instanceof ServiceError) return error.message.replace(/[^.]$/, '$&.')
  if (error.name === 'SqliteError') return `The database is not usable (${error.message}).`
  return 'syscall' in error ? `The operating system reported an error: ${error.message}.` : undefined
}
