//! The operations of the API by name: what each needs of a key, and how it is counted and logged.
//!
//! Pure data; the routes attach behaviour.

use crate::access::Role;

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $role:ident;)*) => {
        /// One operation on a collection, a database or the server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($(#[$doc])* $variant,)*
        }

        impl Operation {
            /// All of them.
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];
            /// How many there are.
            pub(crate) const COUNT: usize = Self::ALL.len();

            /// Its name in routes, metrics and logs.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What a key must hold for it.
            pub(crate) const fn role(self) -> Role {
                match self {
                    $(Self::$variant => Role::$role,)*
                }
            }
        }
    };
}

operations! {
    InsertOne = "insertOne", ReadWrite;
    InsertMany = "insertMany", ReadWrite;
    FindOne = "findOne", Read;
    Find = "find", Read;
    Count = "count", Read;
    Distinct = "distinct", Read;
    Aggregate = "aggregate", Read;
    UpdateOne = "updateOne", ReadWrite;
    UpdateMany = "updateMany", ReadWrite;
    ReplaceOne = "replaceOne", ReadWrite;
    DeleteOne = "deleteOne", ReadWrite;
    DeleteMany = "deleteMany", ReadWrite;
    FindOneAndUpdate = "findOneAndUpdate", ReadWrite;
    FindOneAndReplace = "findOneAndReplace", ReadWrite;
    FindOneAndDelete = "findOneAndDelete", ReadWrite;
    BulkWrite = "bulkWrite", ReadWrite;
    Explain = "explain", Read;
    Import = "import", ReadWrite;
    GetDocument = "getDocument", Read;
    PutDocument = "putDocument", ReadWrite;
    PatchDocument = "patchDocument", ReadWrite;
    DeleteDocument = "deleteDocument", ReadWrite;
    DescribeCollection = "describeCollection", Read;
    CreateCollection = "createCollection", ReadWrite;
    DropCollection = "dropCollection", ReadWrite;
    ListDatabases = "listDatabases", Read;
    ListCollections = "listCollections", Read;
    DropDatabase = "dropDatabase", Admin;
    CreateIndex = "createIndex", ReadWrite;
    DropIndex = "dropIndex", ReadWrite;
    ListIndexes = "listIndexes", Read;
    Compact = "compact", Admin;
    Transaction = "transaction", ReadWrite;
    Changes = "changes", Read;
}

impl Operation {
    /// The document operation of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.name() == name)
    }
}
