/** Shows every design token and component of the console, for developers and the visual regression test. */
import './design.css'
import { Alert, Badge, Button, Group, Stack, Switch, Text, Textarea, TextInput, Title } from '@mantine/core'
import { CodeBlock } from '../components/CopyButton.tsx'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Status } from '../components/Status.tsx'
import { Icon } from '../shell/icons.tsx'
import { ControlSections } from './ControlSections.tsx'
import { Section } from './Section.tsx'
import { TokenSections } from './TokenSections.tsx'

export function DesignPage() {
  return (
    <>
      <PageHeader title="Design" about="The tokens and components of Parley's pages." />
      <div className="design-sections">
        <Section title="Colors">
          <div className="swatches">
            {colors.map((name) => (
              <Swatch key={name} name={name} />
            ))}
          </div>
        </Section>
        <Section title="Type">
          <Stack gap="xs">
            <Title order={1}>Page title, 20 px</Title>
            <Title order={2}>Section heading, 16 px</Title>
            <Text size="md">Body text, 14 px: a visitor asks, the agent answers.</Text>
            <Text size="sm">Table text and controls, 13 px</Text>
            <Text size="xs" c="dimmed">
              Caption, 12 px
            </Text>
            <Text size="sm" ff="monospace">
              Code, 13 px
            </Text>
          </Stack>
        </Section>
        <TokenSections />
        <Section title="Buttons">
          <Group gap="xs">
            <Button leftSection={<Icon name="plus" size={16} />}>Create agent</Button>
            <Button variant="default">Cancel</Button>
            <Button color="red">Delete</Button>
            <Button variant="subtle">Learn more</Button>
            <Button disabled>Save</Button>
            <Button variant="default" size="xs">
              In a row
            </Button>
          </Group>
        </Section>
        <Section title="Fields">
          <div className="two-columns">
            <TextInput label="Name" placeholder="Support" />
            <TextInput label="Name" defaultValue="" error="Enter a name" />
            <Textarea label="Instructions" description="What the agent does" rows={2} />
            <Switch label="Store conversations" defaultChecked />
          </div>
        </Section>
        <ControlSections />
        <Section title="Status">
          <Group gap="lg">
            <Status tone="good">Completed</Status>
            <Status tone="active">Running</Status>
            <Status tone="warn">Incomplete</Status>
            <Status tone="bad">Failed</Status>
            <Status tone="quiet">Never used</Status>
            <Badge variant="light">Active</Badge>
            <Badge variant="light" color="red">
              Revoked
            </Badge>
          </Group>
        </Section>
        <Section title="Table">
          <DataTable label="Example" columns={columns} rows={rows} keyOf={({ name }) => name} />
        </Section>
        <Section title="Notices">
          <Stack gap="sm">
            <Alert color="indigo" title="Information">
              The agent uses the default model.
            </Alert>
            <Alert color="yellow" title="Warning">
              Only the mock model answers.
            </Alert>
            <Failed error={new Error('The server did not respond.')} what="agents" retry={() => {}} />
          </Stack>
        </Section>
        <Section title="Empty and loading">
          <div className="two-columns">
            <Empty icon="agents" title="No agents yet" action={<Button>New agent</Button>}>
              Start from a template. You can change everything later.
            </Empty>
            <Loading what="example" rows={4} />
          </div>
        </Section>
        <Section title="Code">
          <CodeBlock
            what="Embed code"
            code={'<script src="/embed/parley.js" data-api-key="agnt_key-…"></script>'}
          />
        </Section>
      </div>
    </>
  )
}

const colors = [
  ...['canvas', 'surface', 'raised', 'line', 'line-strong', 'edge', 'text', 'muted', 'placeholder'],
  ...['accent', 'accent-hover', 'accent-text', 'accent-soft'],
  ...['good', 'good-soft', 'warn', 'warn-soft', 'bad', 'bad-soft'],
  ...['code-key', 'code-value', 'code-comment'],
]

interface ExampleRow {
  readonly name: string
  readonly requests: number
}

const rows: readonly ExampleRow[] = [
  { name: 'Support', requests: 1_204 },
  { name: 'Site guide', requests: 87 },
]

const columns: readonly Column<ExampleRow>[] = [
  { name: 'usage.agent', render: ({ name }) => name },
  { name: 'providers.status', render: () => <Status tone="good">Completed</Status> },
  { name: 'usage.requests', isNumber: true, render: ({ requests }) => requests.toLocaleString('en') },
]

function Swatch({ name }: { readonly name: string }) {
  return (
    <div className="swatch">
      <div className="swatch-color" data-color={name} />
      <code>--{name}</code>
    </div>
  )
}
