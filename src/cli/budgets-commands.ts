/** Defines the commands about budgets. */
import { type Command, InvalidArgumentError } from 'commander'
import { parseMoment, withJson } from './arguments.ts'

export function addBudgetsCommands(budgets: Command): void {
  const load = () => import('./commands/budgets/budgets.ts')
  const keyHelp = 'parent key, given as the key or its id; required if there are several keys'
  withJson(budgets.command('list'))
    .description('list the budgets of a parent key, oldest first')
    .option('--key <key>', keyHelp)
    .action(async (options) => (await load()).list(options))
  withJson(budgets.command('set'))
    .description('create a budget, or change the one with the same scope, unit and period')
    .requiredOption('--period <period>', 'day, week, month or total')
    .requiredOption('--limit <amount>', 'maximum amount for each period')
    .option('--unit <unit>', 'unit of the amount, such as tokens')
    .option('--agent <id>', 'limit this agent instead of the whole key')
    .option('--each <what>', 'limit each visitor or each conversation of the agent: visitor or conversation')
    .option('--mode <mode>', 'enforce (the default of a new budget), or observe, which rejects nothing')
    .option(
      '--warn-at <percentages>',
      'when to send events, such as 50,80,100 (the default of a new budget); none for never',
      parsePercentages,
    )
    .option('--key <key>', keyHelp)
    .addHelpText('after', ownerHelp)
    .action(async (options) => (await load()).set(options))
  const addEntry = (usage: string) =>
    withJson(budgets.command(usage))
      .requiredOption('--reason <text>', 'reason, recorded in the audit log')
      .option(
        '--subject <pseudonym>',
        'the visitor or conversation to correct, for a budget that applies to each of them',
      )
  addEntry('grant <id> <amount>')
    .description('raise the limit of a budget for its current period')
    .option('--expires <time>', 'time at which the grant ends, such as 2030-01-31T12:00Z', parseMoment)
    .action(async (id, amount, options) => (await load()).grant(id, amount, options))
  addEntry('adjust <id> <amount>')
    .description('correct what a budget has booked in its current period; a negative amount lowers it')
    .action(async (id, amount, options) => (await load()).adjust(id, amount, options))
  withJson(budgets.command('delete <id>'))
    .description('delete a budget with its counters, grants and adjustments')
    .option('--yes', 'confirm the deletion')
    .action(async (id, options) => (await load()).remove(id, options))
  addMetersCommands(
    budgets.command('meters').description('list and clear the models whose answers budgets measure in bytes'),
  )
}

function addMetersCommands(meters: Command): void {
  const load = () => import('./commands/budgets/meters.ts')
  withJson(meters.command('list'))
    .description('list the models that exceeded a bound in the last 24 hours')
    .action(async ({ json }) => (await load()).list(json))
  withJson(meters.command('clear <model>'))
    .description('trust the usage of a model again, such as far/my-model')
    .action(async (model, { json }) => (await load()).clear(model, json))
}

const ownerHelp = `
A budget of a whole key that this command creates belongs to the operator: the
owner of the key sees it, but cannot change it. Budgets of agents belong to the
owner of the key. Running servers apply a change within two seconds.`

function parsePercentages(text: string): number[] {
  if (text === 'none') return []
  if (/^\d{1,3}(,\d{1,3})*$/.test(text)) return text.split(',').map(Number)
  throw new InvalidArgumentError('Must be percentages separated by commas, or none')
}
