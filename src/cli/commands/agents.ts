/** The words of the `agents` commands. */
import type { Command } from 'commander'

/** Fills `parley agents …` in; like every command's, the code behind the words is loaded when it is run. */
export function addAgentsCommands(agents: Command): void {
  withCommonOptions(agents.command('list'))
    .description("list a parent key's agents, newest first")
    .action(async (options) => (await verbs()).list(options))
  withCommonOptions(agents.command('get <id>'))
    .description("print an agent's definition exactly as it is stored")
    .option('--markdown', 'print it rendered as Markdown')
    .action(async (id, options) => (await verbs()).get(id, options))
  withCommonOptions(agents.command('apply <path>'))
    .description('show how agents differ from a folder of definition files, or one file')
    .option('--yes', 'make the agents what the files say')
    .option('--show-keys', 'print the keys of created agents')
    .addHelpText('after', howFilesAreMatched)
    .action(async (path, options) => (await import('./agents-apply.ts')).apply(path, options))
  withCommonOptions(agents.command('export <folder>'))
    .description('write one file per agent, its definition as it is stored')
    .option('--force', 'replace files that say something else')
    .addHelpText('after', howFilesAreNamed)
    .action(async (folder, options) => (await verbs()).exportTo(folder, options))
  withCommonOptions(agents.command('delete <id>'))
    .description('delete an agent, its earlier versions and its key, for good')
    .option('--yes', 'really do it')
    .action(async (id, options) => (await verbs()).remove(id, options))
}

const verbs = () => import('./agents-actions.ts')

const howFilesAreMatched = `
Files end in .yaml, .yml or .md. A file is for the agent whose id stands in its
name, as \`parley agents export\` writes it, else for the only agent with the
definition's name, else for a new one. All files are checked before the first
change. Agents without a file stay as they are: none is ever deleted.`

const howFilesAreNamed = `
A file is called after the agent's name and id, such as
guide.agent-4fKq0ZbT1mXcVd7WnR2s.yaml. When one of an agent's files says
something else, or has another name, nothing is written without --force.`

function withCommonOptions(command: Command): Command {
  return command
    .option('--key <key>', "the agents' parent key, or its id, if there are several")
    .option('--json', 'print JSON')
}
