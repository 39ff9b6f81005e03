create table tenants (
    id uuid primary key
);

create table categories (
    tenant_id uuid not null references tenants (id),
    id        uuid not null,
    primary key (tenant_id, id)
);

create table products (
    id          uuid                     not null,
    tenant_id   uuid                     not null references tenants (id),
    category_id uuid,
    sku         varchar(40)              not null,
    name        varchar(200)             not null,
    price       numeric(12, 2)           not null check (price >= 0),
    status      varchar(20)              not null check (status in ('draft', 'on-sale', 'retired')),
    created_at  timestamp with time zone not null,
    version     bigint                   not null,
    constraint pk_products primary key (id),
    constraint uk_products_tenant_sku unique (tenant_id, sku),
    constraint fk_products_category
        foreign key (tenant_id, category_id) references categories (tenant_id, id)
);

create index ix_products_tenant_status on products (tenant_id, status);
