/** Shows the controls and the components that contain several elements, such as lists and dialogs. */
import {
  Button,
  Checkbox,
  Group,
  Menu,
  NativeSelect,
  Notification,
  SegmentedControl,
  Stack,
  Tabs,
  Text,
} from '@mantine/core'
import { useState } from 'react'
import type { Column } from '../components/DataTable.tsx'
import { Dialog, DialogForm } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { Markdown } from '../components/Markdown.tsx'
import { Icon } from '../shell/icons.tsx'
import { palette } from '../shell/palette.ts'
import { Section } from './Section.tsx'

export function ControlSections() {
  return (
    <>
      <Section title="Controls">
        <Stack gap="md">
          <Tabs defaultValue="edit">
            <Tabs.List>
              <Tabs.Tab value="edit">Edit</Tabs.Tab>
              <Tabs.Tab value="embed">Embed</Tabs.Tab>
            </Tabs.List>
          </Tabs>
          <Group gap="lg" align="center">
            <SegmentedControl aria-label="View" data={['Form', 'YAML']} />
            <NativeSelect aria-label="Model" data={['Default model', 'mock']} />
            <Checkbox label="Remember me" defaultChecked />
            <Checkbox label="Not selected" />
          </Group>
        </Stack>
      </Section>
      <Section title="Menu">
        <div className="open-menu">
          <Menu
            opened
            withinPortal={false}
            trapFocus={false}
            hideDetached={false}
            withInitialFocusPlaceholder={false}
            position="bottom-start"
            width={200}
            transitionProps={{ duration: 0 }}
          >
            <Menu.Target>
              <Button variant="default">Actions</Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item leftSection={<Icon name="copy" size={16} />}>Duplicate</Menu.Item>
              <Menu.Item color="red" leftSection={<Icon name="trash" size={16} />}>
                Delete
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        </div>
      </Section>
      <Section title="List">
        <ExampleList />
      </Section>
      <Section title="Messages">
        <Stack gap="sm" maw={400}>
          <Notification color="green" withBorder closeButtonProps={{ 'aria-label': 'Close' }}>
            Agent saved
          </Notification>
          <Notification color="red" withBorder closeButtonProps={{ 'aria-label': 'Close' }}>
            The server did not respond.
          </Notification>
        </Stack>
      </Section>
      <Section title="Markdown">
        <Markdown text={markdown} />
      </Section>
      <Section title="Dialog and palette">
        <Overlays />
      </Section>
    </>
  )
}

interface Example {
  readonly id: string
  readonly name: string
  readonly model: string
}

const examples: readonly Example[] = [
  { id: 'a', name: 'Concierge', model: 'mock' },
  { id: 'b', name: 'Support', model: 'mock' },
]

const exampleColumns: readonly Column<Example>[] = [
  { name: 'common.agent', isMain: true, sort: 'name', render: ({ name }) => name },
  { name: 'usage.model', render: ({ model }) => model },
]

function ExampleList() {
  return (
    <ListView
      label="Example list"
      items="agents"
      columns={exampleColumns}
      query={{ data: { data: examples }, error: null, refetch: () => {} }}
      idOf={({ id }) => id}
      nameOf={({ name }) => name}
      search={{}}
      onSearch={() => {}}
      sorting={{ sort: 'name', order: 'asc' }}
      placeholder="Name or id"
      filters={[
        { name: 'model', label: 'Model', all: 'All models', options: [{ value: 'mock', label: 'mock' }] },
      ]}
      bulk={[{ label: 'Delete', run: async () => {} }]}
      menu={() => <Menu.Item>Duplicate</Menu.Item>}
      empty={null}
    />
  )
}

const markdown = `Guests can **cancel** until *18:00*, see [the terms](https://www.example.com/terms).

1. Open \`/bookings\`
2. Select a room

| Room | Price |
|---|---|
| Sea view | €129 |

\`\`\`
const rooms = await listRooms()
\`\`\`
`

function Overlays() {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  return (
    <Group gap="sm">
      <Button variant="default" onClick={() => setIsOpen(true)}>
        Open dialog
      </Button>
      <Button variant="default" onClick={palette.open}>
        Open palette
      </Button>
      <Dialog title="Revoke key" isOpen={isOpen} onClose={close}>
        <DialogForm action="Revoke key" isDangerous onSubmit={async () => close()} onCancel={close}>
          <Text size="sm">Requests with this key fail immediately.</Text>
        </DialogForm>
      </Dialog>
    </Group>
  )
}
