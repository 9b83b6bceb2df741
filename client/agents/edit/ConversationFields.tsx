/** Shows the fields that state which conversations an agent stores, and for how long. */
import { Alert, SimpleGrid, Stack, Switch, Text } from '@mantine/core'
import { useMe } from '../../shell/use-me.ts'
import { ChoiceField, NumberField, TextField, useField } from './fields.tsx'

const DEFAULT_KEEP = '30d'

export function ConversationFields() {
  const { value, error, isDisabled, attributes, set } = useField(['conversations'])
  const { is_allowed: isAllowed } = useMe().conversations
  const isOn = value !== undefined && value !== null
  return (
    <Stack gap="sm">
      <Switch
        {...attributes}
        label="Store conversations"
        description="Stores messages, answers and tool calls. Without this setting, nothing is stored."
        checked={isOn}
        error={error}
        disabled={isDisabled}
        onChange={({ currentTarget: { checked } }) => set(checked ? { keep: DEFAULT_KEEP } : undefined)}
      />
      {isOn && !isAllowed ? (
        <Alert color="yellow">
          <Text size="sm">
            This server does not store conversations. These settings have no effect until its operator allows
            it (PARLEY_CONVERSATIONS).
          </Text>
        </Alert>
      ) : null}
      {isOn ? <StoredFields /> : null}
    </Stack>
  )
}

const disconnects = [
  { value: 'cancel', label: 'Stop the answer' },
  { value: 'continue', label: 'Finish the answer' },
]

const toolData = [
  { value: 'full', label: 'Store arguments and results' },
  { value: 'names', label: 'Store only tool names' },
]

function StoredFields() {
  const { max_days: maxDays } = useMe().conversations
  return (
    <>
      <TextField
        path={['conversations', 'keep']}
        label="Delete after"
        about={`Time without activity, such as 12d or 720h. At least 1 day; this server stores at most ${maxDays} days.`}
        isRequired
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <ChoiceField
          path={['conversations', 'onDisconnect']}
          label="If the client disconnects"
          about="A stopped answer can be continued later."
          choices={disconnects}
        />
        <ChoiceField
          path={['conversations', 'toolData']}
          label="Tool data"
          about="Without tool data, later turns cannot refer to the results of tools."
          choices={toolData}
        />
        <NumberField
          path={['conversations', 'history', 'turns']}
          label="History in turns"
          about="Newest turns that the model receives (1 to 200)."
          placeholder="40"
          min={1}
          max={200}
        />
        <NumberField
          path={['conversations', 'history', 'tokens']}
          label="History in tokens"
          about="The most tokens of history that the model receives, estimated (500 to 1,000,000)."
          placeholder="16000"
          min={500}
          max={1_000_000}
          step={500}
        />
        <TextField
          path={['conversations', 'visitor', 'resume']}
          label="Resume conversations for"
          about="How long after the last message the widget reopens a conversation, such as 24h."
          placeholder="24h"
        />
      </SimpleGrid>
      <RightSwitch right="list" label="Visitors can open their earlier conversations" />
      <RightSwitch right="delete" label="Visitors can delete their conversations" />
      <TextField
        path={['conversations', 'notice', 'text']}
        label="Notice"
        about="What the widget says about storage, up to 500 characters. Without a text, it states the number of days."
      />
      <TextField
        path={['conversations', 'notice', 'url']}
        label="Privacy page"
        about="URL that the notice links to. Fill in the notice first."
        placeholder="https://www.example.org/privacy"
      />
    </>
  )
}

interface RightSwitchProps {
  readonly right: 'list' | 'delete'
  readonly label: string
}

/** Visitors have a right unless the definition denies it. */
function RightSwitch({ right, label }: RightSwitchProps) {
  const { value, error, isDisabled, attributes, set } = useField(['conversations', 'visitor', right])
  return (
    <Switch
      {...attributes}
      label={label}
      checked={value !== false}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { checked } }) => set(checked ? undefined : false)}
    />
  )
}
